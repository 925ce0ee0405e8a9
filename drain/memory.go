package drain

import (
	"maps"
	"time"

	"github.com/millwright-go/millwright/machine"
)

// Memory is what a process remembers of the drain of one node. Losing it costs only time. The zero
// Memory means that nothing was attempted before. If an earlier process may have attempted something,
// begin with NewMemory.
type Memory struct {
	// From is the time from which all attempts are known. Before it, any pod may have been tried.
	// Zero: all are known.
	From time.Time
	// Answers are the last ones by UID of the pod, for Detach by name of the attachment.
	Answers map[string]Answer
	// Terminating says when this process first saw that a pod is being deleted, by UID of the pod.
	Terminating map[string]time.Time
	// NoEviction: the cluster answered that it has no eviction API.
	NoEviction bool
	// Turn is the turn of the last pod with volumes that this process told to terminate. Even if the pod is
	// gone before the node's record has this turn, the drain waits for its volumes. The zero value: there was
	// none.
	Turn machine.DrainTurn
}

// Result is the outcome of a call about one pod or attachment.
type Result string

// The results.
const (
	// Accepted: the eviction or deletion is under way (2xx).
	Accepted Result = "Accepted"
	// Refused: not now (429), because a budget does not allow it. Set Answer.RetryAfter if the answer
	// has Retry-After.
	Refused Result = "Refused"
	// NotFound: the pod is gone, or another pod now has its name (404, or a conflict with the UID
	// that the call named).
	NotFound Result = "NotFound"
	// NoEvictionAPI: the cluster can't evict at all (404 or 405 of the subresource itself).
	NoEvictionAPI Result = "NoEvictionAPI"
	// Failed: anything else, with the message, such as the error 500 for a pod with several budgets, 403,
	// no connection, or a timeout of the call. After a timeout the eviction may have been accepted; then the
	// pod's deletion timestamp shows that.
	Failed Result = "Failed"
)

// Kind is the kind of a call.
type Kind string

// The kinds of calls.
const (
	Evicted Kind = "Evict"
	// Deleted is a deletion of a pod with its own grace, or of an attachment.
	Deleted Kind = "Delete"
	// Killed is a deletion with grace 0.
	Killed Kind = "Kill"
)

// Answer is what was answered to one call about one pod or attachment.
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

// Begun must be called after the write of a plan with Begins was stored. The node was not being drained before,
// so this process knows all attempts.
func (m *Memory) Begun() { m.From = time.Time{} }

// Begin must be called before an order is carried out. It remembers the pod's turn, because the write that
// records it may fail, and the answer to the order may get lost.
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

// See must be called with the pods that were read, before a decision about them. For each pod that is seen being
// deleted for the first time, it records the time by the clock of this process, because the cluster's clock may
// differ. all: they are all pods of the node. Then See forgets others, so that the memory of a long drain
// does not grow.
func (m *Memory) See(pods []*Pod, all bool, now time.Time) {
	for _, p := range pods {
		if p == nil || p.GraceEnds.IsZero() || !m.Terminating[p.UID].IsZero() {
			continue
		}
		if m.Terminating == nil {
			m.Terminating = map[string]time.Time{}
		}
		m.Terminating[p.UID] = now
	}
	if all && max(len(m.Answers), len(m.Terminating)) > len(pods) {
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
	maps.DeleteFunc(m.Terminating, func(uid string, _ time.Time) bool { return !there[uid] })
}

// answer returns the answer about a pod or an attachment. The zero Answer: none is known.
func (m *Memory) answer(uid string) Answer {
	if m == nil || len(m.Answers) == 0 {
		return Answer{}
	}
	return m.Answers[uid]
}

// terminatingSince returns when a pod was told to terminate, by the clock of this process: when an eviction or
// deletion was accepted, or else when it was first seen being deleted, which may be later. Zero: it is not known.
func (m *Memory) terminatingSince(uid string) time.Time {
	if a := m.answer(uid); a.Result == Accepted {
		return a.At
	}
	if m == nil {
		return time.Time{}
	}
	return m.Terminating[uid]
}
