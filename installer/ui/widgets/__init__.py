"""Parts that pages are made of. They know values and sentences, never the flow."""
