"""The quality checklist behind `nightingale validate`."""
