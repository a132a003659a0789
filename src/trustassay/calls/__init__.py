"""From single requests to batches and endpoints: gathered, stored, limited, tried again, paid."""
