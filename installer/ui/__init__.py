"""The window. Qt lives here and nowhere else; it draws the flow of `installer.steps.flow` and adds no logic."""
