package apistore

// Losses returns of how many objects unreadable fields are remembered.
func (c *Collection[T, R]) Losses() int {
	l := c.cache.lost
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}
