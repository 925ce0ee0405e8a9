package stage

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// Calls counts calls to driver and cluster, and bulk orders, since the last report.
type Calls struct {
	mu    sync.Mutex
	calls map[string]int // by kind
}

// Effect is a hook.
func (c *Calls) Effect(_ manager.Kind, _ object.Key, name string, _ time.Duration, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = make(map[string]int)
	}
	c.calls[name]++
}

// Of returns how often there was a call of that kind.
func (c *Calls) Of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[name]
}

func (c *Calls) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(c.calls)) {
		parts = append(parts, name+" "+strconv.Itoa(c.calls[name]))
	}
	clear(c.calls)
	return strings.Join(parts, ", ")
}
