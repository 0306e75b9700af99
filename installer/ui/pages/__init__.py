"""The wizard's pages, one file each: they draw the flow and send choices, and hold no state of their own."""
