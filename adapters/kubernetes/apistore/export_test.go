package apistore

// Losses returns the number of objects whose unreadable fields are remembered.
func (c *Collection[T, R]) Losses() int {
	l := c.cache.unreadable
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}
