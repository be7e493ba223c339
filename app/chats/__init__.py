"""Chats kept on disk.  No Qt here."""
