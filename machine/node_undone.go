package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/object"
)

// NodeChange is one entry of a node that a write puts there, changes or removes.
type NodeChange struct {
	What  string // as messages name it, such as "label team"
	Value string // "=" and the value that it gets; empty: it is removed
}

// NodeWrites is what a process remembers of its writes of one machine's node, so that it notices
// another program that undoes them. The zero value remembers nothing. It is not stored: a process
// that has forgotten it writes again at once.
type NodeWrites struct {
	uid  string // of the node
	last map[string]nodeWrite
}

// nodeWrite is the last write of an entry.
type nodeWrite struct {
	value string
	again int // how many writes of the same value came before it
	at    time.Time
}

// With returns what to remember after a write that was accepted at now. w itself does not change.
func (w NodeWrites) With(e *SyncNode, now time.Time) NodeWrites {
	return w.with(e.Node.UID, e.Changes, now)
}

// Marked is With for a condition.
func (w NodeWrites) Marked(e *MarkNode, now time.Time) NodeWrites {
	return w.with(e.Node.UID, []NodeChange{e.change()}, now)
}

// change is a condition as an entry of a node. When it was set, and the words, do not count.
func (e *MarkNode) change() NodeChange {
	return NodeChange{"condition " + e.Condition.Type, "=" + string(e.Condition.Status) + " " + e.Condition.Reason}
}

func (w NodeWrites) with(uid string, changes []NodeChange, now time.Time) NodeWrites {
	next := NodeWrites{uid: uid, last: map[string]nodeWrite{}}
	if w.uid == next.uid {
		maps.Copy(next.last, w.last)
		maps.DeleteFunc(next.last, func(_ string, last nodeWrite) bool { return last.over(now) })
	}
	for _, c := range changes {
		last, known := next.last[c.What]
		switch {
		case !known || last.value != c.Value:
			last = nodeWrite{value: c.Value}
		default:
			last.again++
		}
		last.at = now
		next.last[c.What] = last
	}
	return next
}

// over reports whether a write is so long ago, or in the future, that the next one answers nothing.
func (w nodeWrite) over(now time.Time) bool {
	return w.at.After(now) || !now.Before(w.at.Add(2*undoneRetry))
}

// next is when the entry may be written once more. What was undone once is put back at once, as for
// a person who made a mistake. Then each wait is twice as long as the one before it.
func (w nodeWrite) next() time.Time {
	if w.again == 0 {
		return w.at
	}
	return w.at.Add(min(nodeRetry<<min(w.again-1, 16), undoneRetry))
}

// changeBackoffUntil returns until when a change of a node is held back, because something has undone it again
// and again. Zero: it is not.
func (d *decider) changeBackoffUntil(n *Node, c NodeChange) time.Time {
	w := &d.o.NodeWrites
	last, known := w.last[c.What]
	if w.uid != n.UID || !known || last.value != c.Value || last.over(d.now) || !d.now.Before(last.next()) {
		return time.Time{}
	}
	return last.next()
}

// nodeChange is a change of a node with what takes it back; nil: it can't be separated from others.
type nodeChange struct {
	NodeChange
	back func()
}

// nodeChanges are what a node that was brought in line has otherwise than the observed one. What an
// update in place writes is one whole with the record of it.
func (d *decider) nodeChanges(n *Node, want *Node) []nodeChange {
	k := &d.p.Keys
	all := mapChanges("label ", n.Labels, want.Labels, func(key string) bool { return key != k.NodeMachine && ownLabel(k, key) })
	all = append(all, mapChanges("annotation ", n.Annotations, want.Annotations, func(key string) bool { return ownAnnotation(k, key) })...)
	all = append(all, mapChanges("capacity ", n.Capacity, want.Capacity, func(string) bool { return false })...)
	all = append(all, taintChanges(n, want)...)
	if !n.HasFinalizer(NodeFinalizer) {
		all = append(all, nodeChange{NodeChange{"finalizer " + NodeFinalizer, "="}, func() { want.RemoveFinalizer(NodeFinalizer) }})
	}
	if n.Unschedulable != want.Unschedulable {
		all = append(all, nodeChange{NodeChange{"cordon", "=" + strconv.FormatBool(want.Unschedulable)}, nil})
	}
	if have, record := fmt.Sprint(n.Applied), fmt.Sprint(want.Applied); have != record {
		all = append(all, nodeChange{NodeChange{"record of what was applied", "=" + record}, nil})
	}
	return all
}

func mapChanges(kind string, have, want map[string]string, whole func(key string) bool) (all []nodeChange) {
	keys := slices.Collect(maps.Keys(have))
	for key := range want {
		if _, had := have[key]; !had {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		was, had := have[key]
		is, has := want[key]
		if had == has && was == is {
			continue
		}
		c := nodeChange{NodeChange: NodeChange{What: kind + key}, back: func() { delete(want, key) }}
		if has {
			c.Value = "=" + is
		}
		if had {
			c.back = func() { want[key] = was }
		}
		if whole(key) {
			c.back = nil
		}
		all = append(all, c)
	}
	return all
}

func taintChanges(have, want *Node) (all []nodeChange) {
	name := func(t object.Taint) string { return "taint " + t.Key + ":" + string(t.Effect) }
	for _, t := range want.Taints {
		if !slices.Contains(have.Taints, t) {
			before := without(have.Taints, func(o object.Taint) bool { return !o.Same(t) })
			all = append(all, nodeChange{NodeChange{name(t), "=" + t.Value}, func() {
				want.Taints = append(without(want.Taints, t.Same), before...)
			}})
		}
	}
	for _, t := range have.Taints {
		if !slices.ContainsFunc(want.Taints, t.Same) {
			all = append(all, nodeChange{NodeChange{name(t), ""}, func() { want.Taints = append(want.Taints, t) }})
		}
	}
	return all
}

// dueChanges takes back, of what brings a node in line, what is held back. It returns the changes that
// stay, the names of the others, and when the first of those may be written.
func (d *decider) dueChanges(n *Node, want *Node) (due []NodeChange, held []string, at time.Time) {
	var whole []NodeChange
	for _, c := range d.nodeChanges(n, want) {
		until := d.changeBackoffUntil(n, c.NodeChange)
		if until.IsZero() {
			due = append(due, c.NodeChange)
			continue
		}
		held = append(held, c.What)
		if at.IsZero() || until.Before(at) {
			at = until
		}
		if c.back == nil {
			whole = append(whole, c.NodeChange)
			continue
		}
		c.back()
	}
	if len(due) > 0 {
		due = append(due, whole...) // written with the rest
	}
	return due, held, at
}

// syncedNode is a copy of the node that is in line.
func (d *decider) syncedNode(n *Node) *Node {
	want := n.toApply()
	d.applyToNode(want, d.allowedEntries(n))
	return want
}

// syncHeldBack reports whether nothing of a node that is out of line may be written yet.
func (d *decider) syncHeldBack(n *Node) bool {
	if d.o.NodeWrites.uid != n.UID || len(d.o.NodeWrites.last) == 0 {
		return false
	}
	due, held, _ := d.dueChanges(n, d.syncedNode(n))
	return len(due) == 0 && len(held) > 0
}

// syncDone reports whether this pass writes the node no more: it has tried, or all is held back.
func (d *decider) syncDone(n *Node) bool { return d.o.NodeSynced != nil || d.syncHeldBack(n) }

// undoneEntries names what is not on the node as it was written, and says when to write next.
func (d *decider) undoneEntries(n *Node) (what []string, at time.Time) {
	due, what, at := d.dueChanges(n, d.syncedNode(n))
	for _, c := range due {
		what = append(what, c.What)
	}
	slices.Sort(what)
	if later := d.now.Add(undoneRetry); at.IsZero() || later.Before(at) {
		at = later
	}
	return what, at
}
