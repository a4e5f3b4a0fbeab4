"""The pages of the sign-in: plain forms that post to where they came from, and load nothing."""

from __future__ import annotations

from html import escape

from aiohttp import web

_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:24rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}"
    "label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}"
    "input,button{margin:.25rem 0 1rem;padding:.5rem}.error{color:#b3261e}"
)
_HEADERS = {
    "Cache-Control": "no-cache, no-store, max-age=0, must-revalidate",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def sign_in(csrf: str, *, error: str = "", username: str = "", signed_in_as: str | None = None) -> web.Response:
    """The form for name and password; a browser in session may also go on as who it is."""
    again = ""
    if signed_in_as is not None:
        button = f'<button name="continue" value="1">Sign in as {escape(signed_in_as)}</button>'
        again = f'<form method="post">{_csrf(csrf)}{button}</form><p>Or as another user:</p>'
    fields = _field("Email", "username", "text", "username", username) + _field(
        "Password", "password", "password", "current-password"
    )
    return _page("Sign in", again + _form(csrf, fields, "Sign in"), error)


def new_password(csrf: str, challenge: str, *, error: str = "") -> web.Response:
    """The form for the password that replaces a temporary one."""
    hidden = f'<input type="hidden" name="session" value="{escape(challenge)}">'
    fields = hidden + _field("New password", "new_password", "password", "new-password")
    return _page("Choose a new password", _form(csrf, fields, "Save and sign in"), error)


def failure(error: str) -> web.Response:
    """What a browser sees that cannot be sent back to the application."""
    text = f"An error was encountered with the requested page.</p><p><code>{escape(error)}</code>"
    return _page("Error", f"<p>{text}</p>", "", status=400)


def _form(csrf: str, fields: str, button: str) -> str:
    return f'<form method="post">{_csrf(csrf)}{fields}<button>{button}</button></form>'


def _csrf(csrf: str) -> str:
    return f'<input type="hidden" name="_csrf" value="{escape(csrf)}">'


def _field(label: str, name: str, kind: str, autocomplete: str, value: str = "") -> str:
    attributes = f'id="{name}" name="{name}" type="{kind}" autocomplete="{autocomplete}" value="{escape(value)}"'
    return f'<label for="{name}">{label}</label><input {attributes} required>'


def _page(title: str, body: str, error: str, *, status: int = 200) -> web.Response:
    told = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1>{told}{body}</body></html>"
    )
    return web.Response(status=status, text=text, content_type="text/html", headers=_HEADERS)
