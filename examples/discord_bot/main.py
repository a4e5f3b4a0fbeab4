"""The bot at Discord: answers each message that mentions it. Needs discord.py, and the variables of README.md."""

from __future__ import annotations

import os

import discord

from cicada_client import CicadaClient
from examples.discord_bot import bot

NO_MENTIONS = discord.AllowedMentions.none()
"""An answer that quotes "@everyone" calls nobody."""


class Message:
    """A message of the bot."""

    def __init__(self, message: discord.Message) -> None:
        self._message = message

    async def edit(self, text: str) -> None:
        """Replace its text."""
        await self._message.edit(content=text, allowed_mentions=NO_MENTIONS)


class Channel:
    """Replies to a message."""

    def __init__(self, asked: discord.Message) -> None:
        self._asked = asked

    async def send(self, text: str) -> Message:
        """Send a reply."""
        return Message(await self._asked.reply(text, allowed_mentions=NO_MENTIONS))


class Bot(discord.Client):  # type: ignore[misc]  # discord.py is not installed here
    """The connection to Discord."""

    def __init__(self, cicada: CicadaClient) -> None:
        super().__init__(intents=discord.Intents(guilds=True, messages=True, message_content=True))
        self._cicada = cicada

    async def on_message(self, message: discord.Message) -> None:
        """Answer a message that mentions the bot. A channel is one conversation."""
        if self.user is None or message.author.bot or self.user not in message.mentions:
            return
        question = message.content.replace(self.user.mention, "").strip()
        if question:
            conversation = f"discord-{message.channel.id}"
            await bot.reply(Channel(message), self._cicada, question, conversation=conversation)

    async def setup_hook(self) -> None:
        """Open the client in the loop of Discord's."""
        await self._cicada.__aenter__()

    async def close(self) -> None:
        """Leave Discord, and the deployment."""
        await super().close()
        await self._cicada.__aexit__(None, None, None)


if __name__ == "__main__":
    Bot(CicadaClient(os.environ["CICADA_URL"], token=os.environ.get("CICADA_TOKEN"))).run(os.environ["DISCORD_TOKEN"])
