package machine

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

// DrainRecord is what must outlive a process that drains a node. It is kept on
// the node, written together with the cordon, and removed with the node or with
// the uncordon. All times have whole seconds. Package drain alone reads and
// writes it.
type DrainRecord struct {
	// Since is when the drain began. Slots of attempts and, where the caller
	// names no deadline, the drain timeout count from it. Zero: no drain.
	Since time.Time
	// Cordoned is when this drain last cordoned the node. Zero: the node was
	// cordoned already, and stays so when the drain is undone.
	Cordoned time.Time
	// Forced is when force began; its bound counts from here. Zero: no force.
	Forced time.Time
	// Fenced says that this drain put the out-of-service taint there.
	Fenced bool
	// Turn is the pod with volumes that left last. The zero Turn: none did.
	Turn DrainTurn
	// Youngest is when the youngest of the pods was created that were on the node when the drain
	// began, by the cluster's clock. Pods that were created later came in spite of the cordon. Zero:
	// there was no pod.
	Youngest time.Time
	// Returns are the rounds in which such later pods were told to go, by controller.
	Returns []DrainReturn
	// Emptied is when the drain found that it had nothing more to wait for than volumes that are
	// attached to the node. Zero: it has not come so far.
	Emptied time.Time
}

// DrainReturn counts the rounds in which the later pods of a controller were told to go.
type DrainReturn struct {
	Controller string // its UID, or a namespace of pods without one
	Rounds     int32
	// Youngest is when the youngest pod of the last round was created, by the cluster's clock.
	Youngest time.Time
}

func (r DrainReturn) equal(o DrainReturn) bool {
	return r.Controller == o.Controller && r.Rounds == o.Rounds && r.Youngest.Equal(o.Youngest)
}

// DrainTurn is a pod whose volumes are followed from its eviction on.
type DrainTurn struct {
	Pod   object.Key
	UID   string        // decides; empty: no turn
	Since time.Time     // when the pod was told to go
	Grace time.Duration // the pod's own termination grace, zero or more
	// Volumes are those attached here when the pod was told to go.
	Volumes []string
	// Detached is when none of them was attached here any more. Zero: some were.
	Detached time.Time
}

// Clone returns a copy that shares nothing with r; nil of nil.
func (r *DrainRecord) Clone() *DrainRecord {
	if r == nil {
		return nil
	}
	c := *r
	c.Turn.Volumes = slices.Clone(r.Turn.Volumes)
	c.Returns = slices.Clone(r.Returns)
	return &c
}

// Equal reports whether both say the same. Two nil records do.
func (r *DrainRecord) Equal(o *DrainRecord) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Since.Equal(o.Since) && r.Cordoned.Equal(o.Cordoned) && r.Forced.Equal(o.Forced) &&
		r.Fenced == o.Fenced && r.Turn.equal(&o.Turn) && r.Youngest.Equal(o.Youngest) &&
		slices.EqualFunc(r.Returns, o.Returns, DrainReturn.equal) && r.Emptied.Equal(o.Emptied)
}

func (t *DrainTurn) equal(o *DrainTurn) bool {
	return t.Pod == o.Pod && t.UID == o.UID && t.Since.Equal(o.Since) && t.Grace == o.Grace &&
		slices.Equal(t.Volumes, o.Volumes) && t.Detached.Equal(o.Detached)
}
