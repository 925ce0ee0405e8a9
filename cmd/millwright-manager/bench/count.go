package main

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// writes counts requests: changes by the resource that they change, and reads as "reads of" a resource.
// Watches don't count.
type writes struct {
	mu    sync.Mutex
	count map[string]int
}

// counted returns a copy of a config whose requests are counted.
func (w *writes) counted(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, w} })
	return c
}

// take returns the counts since the last call.
func (w *writes) take() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.count
	w.count = nil
	return taken
}

type counter struct {
	next   http.RoundTripper
	writes *writes
}

// RoundTrip implements http.RoundTripper.
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	name := resourceOf(r.URL.Path)
	if r.Method == http.MethodGet {
		name = "reads of " + name
		if r.URL.Query().Get("watch") != "" {
			name = ""
		}
	}
	if name != "" {
		c.writes.mu.Lock()
		if c.writes.count == nil {
			c.writes.count = map[string]int{}
		}
		c.writes.count[name]++
		c.writes.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// resourceOf returns the resource in a path of the API: /apis/GROUP/VERSION/namespaces/N/RESOURCE/NAME
// or /api/VERSION/RESOURCE/NAME.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) > skip+2 && parts[skip] == "namespaces" {
		skip += 2
	}
	if len(parts) <= skip {
		return ""
	}
	return parts[skip]
}
