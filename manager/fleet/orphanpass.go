package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
)

// orphans deletes VMs that no machine owns, or groups. Its memory may be lost: then
// they are sighted again.
type orphans struct {
	Config
	groups bool

	asked      map[object.Key]orphan.Class // without listings
	candidates []orphan.Candidate
	unlisted   []orphan.Unlisted
	sighted    []string
	unhealthy  []orphan.Unhealthy
	spent      []safety.Spent
	began      time.Time             // of the first pass
	tries      map[string]orphan.Try // by provider ID
}

// failed are the deletes that failed last, in order.
func (r *orphans) failed() []orphan.Try {
	tries := make([]orphan.Try, 0, len(r.tries))
	for _, id := range slices.Sorted(maps.Keys(r.tries)) {
		tries = append(tries, r.tries[id])
	}
	return tries
}

// quarry is what a pass looks for: VMs, or groups.
type quarry interface {
	// names are what hooks are told of, and what an event calls one.
	names() quarryNames
	// list asks for those of a class: names of owners by ID, and which are unhealthy. It may be called at
	// once for several.
	list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error)
	// spared are IDs that are never judged, even if they are listed.
	spared(ctx context.Context) (map[string]bool, error)
	// readOwners reads them from a cache, or live with a count of what else is in the store.
	readOwners(ctx context.Context, live bool) error
	// still reports whether an order holds, by what the store, not a cache, says now.
	still(ctx context.Context, order *orphan.Delete) (bool, error)
	// about is the object that an order is about.
	about(order *orphan.Delete) object.Key
	// delete carries an order out.
	delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error
}

// quarryNames are effects, and the reason of a failed deletion.
type quarryNames struct {
	list, read, delete string
	change             string // of a deletion, without the object
	failed             decision.Reason
}

// orphanPass is one pass over the VMs, or the groups, of all classes.
type orphanPass struct {
	*engine.Pass
	*orphans
	of      quarry
	plan    orphan.Plan
	classes map[object.Key]*machine.Class
	o       orphan.Observation
	read    bool // machines were read in this pass
	odd     bool // something was warned of
}

// withDropped is a list with the entries that can't be acted upon, so that they are
// reported. One that has an ID comes without its name, which may be cut: so it
// is neither a machine's nor an orphan.
func withDropped(listed, dropped map[string]string) map[string]string {
	if len(dropped) == 0 {
		return listed
	}
	all := make(map[string]string, len(listed)+len(dropped))
	for id, name := range dropped {
		if strings.TrimSpace(id) != "" {
			name = ""
		}
		all[id] = name
	}
	maps.Copy(all, listed)
	return all
}

var (
	reasonVMNotDeleted    = decision.NewReason("OrphanDeleteFailed", "orphan VM {name} could not be deleted: {code}: {detail}")
	reasonGroupNotDeleted = decision.NewReason("OrphanGroupDeleteFailed", "orphan group {name} could not be deleted: {code}: {detail}")
)
