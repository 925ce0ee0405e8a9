package drain

import (
	"maps"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Memory is what a process remembers of the drain of one node. Losing it costs time only. The zero
// Memory knows everything: nothing was attempted before it. A process that may have had a
// predecessor begins with NewMemory.
type Memory struct {
	// From is the time from which all attempts are known. Before it, any pod may have been tried.
	// Zero: all are known.
	From time.Time
	// Answers are the last ones by UID of the pod, for Detach by name of the attachment.
	Answers map[string]Answer
	// Going is when this process first saw a pod being deleted, by UID of the pod.
	Going map[string]time.Time
	// NoEviction: the cluster answered that it has no eviction API.
	NoEviction bool
	// Turn is the turn of the pod with volumes that this process told to terminate last. If the pod goes
	// before the node's record has its turn, the drain still waits for its volumes. The zero value:
	// there was none.
	Turn machine.DrainTurn
}

// Result is the outcome of a call about one pod or attachment.
type Result string

// The results.
const (
	// Accepted: the eviction or deletion is under way (2xx).
	Accepted Result = "Accepted"
	// Refused: not now (429), because a budget does not allow it. With Retry-After if the answer has
	// one.
	Refused Result = "Refused"
	// NotFound: the pod is gone, or another pod now has its name (404, or a conflict with the UID
	// that the call named).
	NotFound Result = "NotFound"
	// NoEvictionAPI: the cluster can't evict at all (404 or 405 of the subresource itself).
	NoEvictionAPI Result = "NoEvictionAPI"
	// Failed: anything else, such as the error 500 for a pod with several budgets, 403, or no
	// connection, with the message. The end of the caller's own deadline too: the eviction may have
	// been accepted, and the pod's deletion timestamp shows that then.
	Failed Result = "Failed"
)

// Kind is which call was made.
type Kind string

// The kinds of calls.
const (
	Evicted Kind = "Evict"
	// Deleted is a deletion with the pod's own grace, or of an attachment.
	Deleted Kind = "Delete"
	// Killed is a deletion with grace 0.
	Killed Kind = "Kill"
)

// Answer to one call about one pod or attachment.
type Answer struct {
	Kind   Kind
	Result Result
	// At is when the call was made.
	At time.Time
	// RetryAfter is how long the server asks the caller to wait (Retry-After). Zero: it did not
	// ask.
	RetryAfter time.Duration
	Message    string // of the server, for people; may be empty
}

// NewMemory returns the memory of a process that first sees a node's drain and does not know what
// earlier processes have attempted.
func NewMemory(now time.Time) *Memory { return &Memory{From: now} }

// Begun must be called after the write of a plan with Begins set was stored. The node was not being
// drained before, so this process knows all attempts.
func (m *Memory) Begun() { m.From = time.Time{} }

// Begin must be called before an order about a pod is carried out, because the following write of
// the record may fail, and the answer may get lost.
func (m *Memory) Begin(o Order) {
	if o.Turn != nil {
		m.Turn = *o.Turn
	}
}

// Note records the answer to an order.
func (m *Memory) Note(uid string, a Answer) {
	if a.Kind == Evicted && a.Result == NoEvictionAPI {
		m.NoEviction = true
	}
	if m.Answers == nil {
		m.Answers = map[string]Answer{}
	}
	m.Answers[uid] = a
}

// See must be called with the pods that were read, before a decision about them. It notes which are
// first seen being deleted, and from when on by the clock of this process: the cluster's may differ.
// If the pods are all that the node has, See drops what is known of others, so that the memory of a
// long drain does not grow.
func (m *Memory) See(pods []*Pod, all bool, now time.Time) {
	for _, p := range pods {
		if p == nil || p.GraceEnds.IsZero() || !m.Going[p.UID].IsZero() {
			continue
		}
		if m.Going == nil {
			m.Going = map[string]time.Time{}
		}
		m.Going[p.UID] = now
	}
	if all && max(len(m.Answers), len(m.Going)) > len(pods) {
		m.forget(pods)
	}
}

// forget drops what is known of pods that are not among those given.
func (m *Memory) forget(pods []*Pod) {
	there := make(map[string]bool, len(pods))
	for _, p := range pods {
		if p != nil {
			there[p.UID] = true
		}
	}
	maps.DeleteFunc(m.Answers, func(uid string, _ Answer) bool { return !there[uid] })
	maps.DeleteFunc(m.Going, func(uid string, _ time.Time) bool { return !there[uid] })
}

// answer returns the answer about a pod or an attachment. The zero Answer: none is known.
func (m *Memory) answer(uid string) Answer {
	if m == nil || len(m.Answers) == 0 {
		return Answer{}
	}
	return m.Answers[uid]
}

// told returns when a pod was told to terminate, by the clock of this process: when an order of it was
// accepted, or else when it was first seen being deleted, which may be later. Zero: it is not known.
func (m *Memory) told(uid string) time.Time {
	if a := m.answer(uid); a.Result == Accepted {
		return a.At
	}
	if m == nil {
		return time.Time{}
	}
	return m.Going[uid]
}
