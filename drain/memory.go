package drain

import (
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
	// NoEviction: the cluster answered that it has no eviction API.
	NoEviction bool
	// Turn is the turn of the pod with volumes that this process told to go last. If the pod goes
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

// Forget drops the answers about pods that are not among those given, so that the memory of a long
// drain does not grow. Only pass complete lists.
func (m *Memory) Forget(pods []*Pod) {
	if len(m.Answers) <= len(pods) {
		return
	}
	there := make(map[string]bool, len(pods))
	for _, p := range pods {
		if p != nil {
			there[p.UID] = true
		}
	}
	for uid := range m.Answers {
		if !there[uid] {
			delete(m.Answers, uid)
		}
	}
}

// answer returns the answer about a pod or an attachment. The zero Answer: none is known.
func (m *Memory) answer(uid string) Answer {
	if m == nil || len(m.Answers) == 0 {
		return Answer{}
	}
	return m.Answers[uid]
}
