/**
 * Builds the npm packages: `node packages/build.mjs [folder]` writes `cicada-client-<version>.tgz` and
 * `cicada-chat-<version>.tgz` to the folder (`dist` if it is left out).
 */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const packages = dirname(fileURLToPath(import.meta.url));
const root = dirname(packages);
const target = resolve(process.argv[2] ?? join(root, "dist"));

/**
 * What a package ships: bundled modules by their source, and the file whose types are its own.
 *
 * @type {Record<string, { bundles: Record<string, string>, types: string }>}
 */
const PACKAGES = {
  client: { bundles: { "cicada-client.js": "client/src/index.js" }, types: "client/src/index.d.ts" },
  chat: { bundles: { "cicada-chat.js": "chat/src/element.js" }, types: "chat/src/element.d.ts" },
};

mkdirSync(target, { recursive: true });
for (const [name, { bundles, types }] of Object.entries(PACKAGES)) {
  const folder = mkdtempSync(join(tmpdir(), "cicada-package-"));
  try {
    for (const [file, source] of Object.entries(bundles)) {
      await build({
        entryPoints: [join(packages, source)],
        outfile: join(folder, "dist", file),
        bundle: true,
        minify: true,
        format: "esm",
        target: "es2022",
        charset: "utf8",
        loader: { ".css": "text" },
        legalComments: "linked",
        sourcemap: true,
        logLevel: "warning",
      });
    }
    declareTypes(join(folder, "dist", "types"));
    const manifest = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
    delete manifest.private;
    manifest.types = `./dist/types/${types}`;
    manifest.exports = { ".": { types: manifest.types, default: `./dist/${Object.keys(bundles)[0]}` } };
    manifest.files = ["dist"];
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    for (const file of ["README.md"]) cpSync(join(packages, name, file), join(folder, file));
    cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
    const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", target], { cwd: folder, encoding: "utf8" });
    const [{ filename, size }] = JSON.parse(packed);
    console.log(`${join(target, filename)}  ${size} bytes`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @param {string} folder */
function declareTypes(folder) {
  const options = ["--declaration", "--emitDeclarationOnly", "--noEmit", "false", "--rootDir", packages, "--outDir", folder];
  const files = ["client/src/index.js", "chat/src/element.js", "chat/src/css.d.ts"].map((file) => join(packages, file));
  const shared = ["--allowJs", "--strict", "--target", "es2023", "--module", "esnext", "--moduleResolution", "bundler"];
  const more = ["--lib", "es2023,dom,dom.iterable", "--resolveJsonModule", "--skipLibCheck"];
  execFileSync(join(root, "node_modules", ".bin", "tsc"), [...files, ...shared, ...more, ...options, "--ignoreConfig"], {
    cwd: root,
    stdio: "inherit",
  });
}
