"""The only folder that imports NodeGraphQt: gestures become requests, change sets become items."""
