package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/object"
)

// NodeChange is one entry of a node that a write adds, changes or removes.
type NodeChange struct {
	What  string // its name in messages, such as "label team"
	Value string // "=" and the new value; empty: it is removed
}

// NodeWrites is what a process remembers of its writes of one machine's node, to detect another program that
// undoes them. The zero value remembers nothing. It is not stored: after a restart the process writes again at
// once.
type NodeWrites struct {
	uid  string // of the node
	last map[string]nodeWrite
}

// nodeWrite is the last write of an entry.
type nodeWrite struct {
	value   string
	repeats int // how many writes of the same value came before it
	at      time.Time
}

// With returns what to remember after a write that was accepted at now. It does not change w.
func (w NodeWrites) With(e *SyncNode, now time.Time) NodeWrites {
	return w.with(e.Node.UID, e.Changes, now)
}

// Marked is With for a condition.
func (w NodeWrites) Marked(e *MarkNode, now time.Time) NodeWrites {
	return w.with(e.Node.UID, []NodeChange{e.change()}, now)
}

// change returns the condition as an entry of a node. Time and message do not count.
func (e *MarkNode) change() NodeChange {
	c := &e.Condition
	return NodeChange{"condition " + c.Type, "=" + string(c.Status) + " " + c.Reason + " " + c.Message}
}

func (w NodeWrites) with(uid string, changes []NodeChange, now time.Time) NodeWrites {
	next := NodeWrites{uid: uid, last: map[string]nodeWrite{}}
	if w.uid == next.uid {
		maps.Copy(next.last, w.last)
		maps.DeleteFunc(next.last, func(_ string, last nodeWrite) bool { return last.expired(now) })
	}
	for _, c := range changes {
		last, known := next.last[c.What]
		switch {
		case !known || last.value != c.Value:
			last = nodeWrite{value: c.Value}
		default:
			last.repeats++
		}
		last.at = now
		next.last[c.What] = last
	}
	return next
}

// expired reports whether a write is too old, or in the future, so that the next one is no repetition.
func (w nodeWrite) expired(now time.Time) bool {
	return w.at.After(now) || !now.Before(w.at.Add(2*undoneRetry))
}

// next returns when the entry may be written again. The first repetition is immediate, because a person may have
// made a mistake. Each further wait is twice as long.
func (w nodeWrite) next() time.Time {
	if w.repeats == 0 {
		return w.at
	}
	return w.at.Add(min(nodeRetry<<min(w.repeats-1, 16), undoneRetry))
}

// changeBackoffUntil returns until when a change of a node is delayed because another program keeps undoing it.
// Zero: it is not delayed.
func (d *decider) changeBackoffUntil(n *Node, c NodeChange) time.Time {
	w := &d.o.NodeWrites
	last, known := w.last[c.What]
	if w.uid != n.UID || !known || last.value != c.Value || last.expired(d.now) || !d.now.Before(last.next()) {
		return time.Time{}
	}
	return last.next()
}

// nodeChange is a change of a node, and a function that undoes it in the node to write.
type nodeChange struct {
	NodeChange
	undo func() // nil: it can't be undone separately
}

// nodeChanges returns how a synced node (want) differs from the observed one. Changes of an in-place update
// belong to one record and can't be undone separately.
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

// mapChanges returns the changes between two maps. inseparable reports whether the change of a key can't be
// undone separately.
func mapChanges(kind string, have, want map[string]string, inseparable func(key string) bool) (all []nodeChange) {
	keys := slices.Collect(maps.Keys(have))
	for key := range want {
		if _, had := have[key]; !had {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		old, had := have[key]
		value, has := want[key]
		if had == has && old == value {
			continue
		}
		c := nodeChange{NodeChange: NodeChange{What: kind + key}, undo: func() { delete(want, key) }}
		if has {
			c.Value = "=" + value
		}
		if had {
			c.undo = func() { want[key] = old }
		}
		if inseparable(key) {
			c.undo = nil
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

// revertDelayedChanges undoes the delayed changes in want. It returns the remaining changes, the names of the
// delayed ones, and when the first of them is due. A delayed change that can't be undone is written with the
// remaining ones, if there are any.
func (d *decider) revertDelayedChanges(n *Node, want *Node) (due []NodeChange, delayed []string, at time.Time) {
	var inseparable []NodeChange
	for _, c := range d.nodeChanges(n, want) {
		until := d.changeBackoffUntil(n, c.NodeChange)
		if until.IsZero() {
			due = append(due, c.NodeChange)
			continue
		}
		delayed = append(delayed, c.What)
		if at.IsZero() || until.Before(at) {
			at = until
		}
		if c.undo == nil {
			inseparable = append(inseparable, c.NodeChange)
			continue
		}
		c.undo()
	}
	if len(due) > 0 {
		due = append(due, inseparable...) // written with the rest
	}
	return due, delayed, at
}

// syncedNode returns a copy of the node as it should be.
func (d *decider) syncedNode(n *Node) *Node {
	want := n.toApply()
	d.applyToNode(want, d.allowedEntries(n))
	return want
}

// syncDelayed reports whether all changes of a node that is out of sync are delayed.
func (d *decider) syncDelayed(n *Node) bool {
	if d.o.NodeWrites.uid != n.UID || len(d.o.NodeWrites.last) == 0 {
		return false
	}
	due, delayed, _ := d.revertDelayedChanges(n, d.syncedNode(n))
	return len(due) == 0 && len(delayed) > 0
}

// syncDone reports whether this pass no longer writes the node: it has tried, or all changes are delayed.
func (d *decider) syncDone(n *Node) bool { return d.o.NodeSynced != nil || d.syncDelayed(n) }

// undoneEntries names the entries that another program has changed back, and says when to write next.
func (d *decider) undoneEntries(n *Node) (what []string, at time.Time) {
	due, what, at := d.revertDelayedChanges(n, d.syncedNode(n))
	for _, c := range due {
		what = append(what, c.What)
	}
	slices.Sort(what)
	if later := d.now.Add(undoneRetry); at.IsZero() || later.Before(at) {
		at = later
	}
	return what, at
}
