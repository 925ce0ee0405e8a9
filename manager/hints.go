package manager

import (
	"slices"
	"sync"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// hints are reasons to look for orphans of a class before its time. Losing
// them costs time only.
type hints struct {
	mu  sync.Mutex
	all []orphan.Hint
}

// add remembers a hint. Of machines that have disappeared the first counts
// until it was followed; of a machine with several VMs the last answer does.
func (h *hints) add(hint orphan.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.all {
		if known := &h.all[i]; known.Class == hint.Class && known.Several == hint.Several {
			if hint.Several != "" {
				known.At = hint.At
			}
			return
		}
	}
	h.all = append(h.all, hint)
}

// open drops the hints of classes that are gone, or were asked for since, and
// returns the others.
func (h *hints) open(classes map[object.Key]orphan.Class) []orphan.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(hint orphan.Hint) bool {
		class, there := classes[hint.Class]
		return !there || class.Asked.After(hint.At)
	})
	return slices.Clone(h.all)
}
