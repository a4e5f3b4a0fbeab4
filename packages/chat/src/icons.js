/** Line icons, each on a grid of 20 by 20. */

/** @type {Record<string, string>} */
export const ICONS = {
  menu: "M3.5 5.5h13M3.5 10h13M3.5 14.5h13",
  new: "M10 4v12M4 10h12",
  edit: "m4 16 .8-3.4L13 4.4l2.6 2.6-8.2 8.2zM11.2 6.2l2.6 2.6",
  bin: "M4 6h12M8 6V4h4v2M5.5 6l.8 10h7.4l.8-10M8.5 9v4.5M11.5 9v4.5",
  upload: "M10 13V4M6 7.5 10 3.5l4 4M4 16.5h12",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  send: "M10 16.5v-13M4.5 9 10 3.5 15.5 9",
  stop: "M6.5 5h7A1.5 1.5 0 0 1 15 6.5v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 5 13.5v-7A1.5 1.5 0 0 1 6.5 5z",
  again: "M4 10a6 6 0 1 1 1.8 4.3M4 16v-4h4",
  down: "M10 3.5v13M4.5 11l5.5 5.5 5.5-5.5",
  chevron: "m7.5 5 5 5-5 5",
  filter: "M3.5 6h13M6 10h8M8.5 14h3",
  up_thumb: "M6.5 9 9.5 3.5c1.2 0 2 .9 2 2V8h4l-1 7.5H6.5zM6.5 9h-3v6.5h3",
  down_thumb: "M6.5 11l3 5.5c1.2 0 2-.9 2-2V12h4l-1-7.5H6.5zM6.5 11h-3V4.5h3",
  verified: "m4.5 10.5 3.7 3.7 7.3-8",
  unchecked: "M6 10h8",
  read: "M10 5.5C8 4 5.5 3.8 3 4.3v11c2.5-.5 5-.3 7 1.2 2-1.5 4.5-1.7 7-1.2v-11c-2.5-.5-5-.3-7 1.2zM10 5.5v11",
  scales: "M10 3v14M6.5 17h7M4 6h12M4 6l-2 5.5h4zM16 6l-2 5.5h4z",
  before: "m12.5 5-5 5 5 5",
  after: "m7.5 5 5 5-5 5",
  close: "m5 5 10 10M15 5 5 15",
  copy: "M7.5 7.5h9v9h-9zM12.5 7.5v-4h-9v9h4",
  unverified: "M10 4.5v7M10 15.2v.1",
};
