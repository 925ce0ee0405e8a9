package machineset

import (
	"cmp"
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// ranked is a machine with its place in an order: lower is deleted first. The facts
// it is ranked by are packed, so that comparing two rarely looks at a machine.
type ranked struct {
	rank    uint64
	age     int64
	machine *machine.Machine
}

// compare is total: no two objects share name, namespace and UID.
func (a ranked) compare(b ranked) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	if a.age != b.age {
		return cmp.Compare(a.age, b.age)
	}
	if a.machine.Name != b.machine.Name {
		return cmp.Compare(a.machine.Name, b.machine.Name)
	}
	return cmp.Compare(a.machine.UID, b.machine.UID)
}

// lowest keeps the lowest of what it is offered, up to its limit: a heap with
// the highest of them on top. A limit of zero keeps nothing.
type lowest struct {
	limit int
	items []ranked
}

func (l *lowest) offer(r ranked) {
	switch {
	case len(l.items) < l.limit:
		l.items = append(l.items, r)
		l.up(len(l.items) - 1)
	case l.limit > 0 && r.compare(l.items[0]) < 0:
		l.items[0] = r
		l.down(0)
	}
}

func (l *lowest) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if l.items[i].compare(l.items[parent]) <= 0 {
			return
		}
		l.items[i], l.items[parent] = l.items[parent], l.items[i]
		i = parent
	}
}

func (l *lowest) down(i int) {
	for {
		top := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(l.items); child++ {
			if l.items[child].compare(l.items[top]) > 0 {
				top = child
			}
		}
		if top == i {
			return
		}
		l.items[i], l.items[top] = l.items[top], l.items[i]
		i = top
	}
}

// sorted returns what was kept, lowest first. Nothing can be offered afterwards.
func (l *lowest) sorted() []ranked {
	slices.SortFunc(l.items, ranked.compare)
	return l.items
}
