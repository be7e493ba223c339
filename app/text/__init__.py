"""Text as people and models wrote it, turned into plain values the window can show.  No Qt here."""
