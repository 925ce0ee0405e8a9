package drain

import (
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Memory is what a process remembers of the drain of one node. It may be lost
// at the cost of time only. The zero Memory knows everything: nothing was
// attempted before it. A process that may have had a predecessor begins with
// NewMemory.
type Memory struct {
	// From is since when attempts are known; before it, any pod may have been
	// tried to evict. Zero: all are known.
	From time.Time
	// Answers are the last ones by UID of the pod, for Detach by name of the
	// attachment.
	Answers map[string]Answer
	// NoEviction says that the cluster answered that it has no eviction API.
	NoEviction bool
	// Turn is that of the pod with volumes that this process told to go last. If the pod goes
	// before the record of the drain has its turn, its volumes are waited for all the same. The
	// zero value: there was none.
	Turn machine.DrainTurn
}

// Result is how a call about one pod or attachment ended.
type Result string

// The results.
const (
	// Accepted: the eviction or deletion is under way.
	Accepted Result = "Accepted"
	// Refused: not now (HTTP 429); a budget does not allow it.
	Refused Result = "Refused"
	// NotFound: the pod is gone, or another one has its name by now (404, or a
	// conflict with the UID that the call named).
	NotFound Result = "NotFound"
	// NoEvictionAPI: the cluster can't evict at all.
	NoEvictionAPI Result = "NoEvictionAPI"
	// Failed: anything else, such as the error 500 for a pod with several
	// budgets.
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
	// RetryAfter is how long the server wants to be left alone (Retry-After).
	// Zero: it did not say.
	RetryAfter time.Duration
	Message    string // of the server, for people; may be empty
}

// NewMemory returns the memory of a process that looks at a node's drain for
// the first time and does not know what others have attempted before.
func NewMemory(now time.Time) *Memory { return &Memory{From: now} }

// Begun is to be called after the write of a plan with Begins set was stored:
// the node was not being drained before, so that this process knows all
// attempts.
func (m *Memory) Begun() { m.From = time.Time{} }

// Begin is to be called before an order about a pod is carried out: the write of the record that
// follows it may fail, and its answer may get lost.
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

// Forget drops the answers about pods that are not among those given, so that
// the memory of a long drain does not grow. It is for complete lists only.
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

// answer about a pod or an attachment; the zero Answer: none is known.
func (m *Memory) answer(uid string) Answer {
	if m == nil || len(m.Answers) == 0 {
		return Answer{}
	}
	return m.Answers[uid]
}
