package manager

import (
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/safety/replacement"
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

// missing are machines whose VMs no listing names, or names as unhealthy, on their way
// from the pass that listed VMs to those of the machines. Losing them costs time only.
type missing struct {
	mu   sync.Mutex
	all  map[object.Key]*missed
	sick map[object.Key]*sick
	wake func(object.Key) // has a machine looked at; nil: it is in its time
}

// missed is a machine whose VM is missing, and what the provider said when asked.
type missed struct {
	orphan.Unlisted
	found    bool // or it can't be told: nothing follows from the last listing
	notFound bool
}

// sick is a machine whose VM is unhealthy in the last listing.
type sick struct {
	orphan.Unhealthy
	asked bool // the provider, since that listing
}

// wakes sets who has machines looked at whose VMs are missing or unhealthy.
func (s *missing) wakes(wake func(object.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// note takes in what listings do not name, or name as unhealthy. Of a machine of which
// a further listing says so too the provider is asked again.
func (s *missing) note(unlisted []orphan.Unlisted, unhealthy []orphan.Unhealthy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteSick(unhealthy)
	before := s.all
	s.all = make(map[object.Key]*missed)
	for _, u := range unlisted {
		if u.Missing.IsZero() {
			continue
		}
		if known := before[u.Machine]; known != nil && known.Unlisted == u {
			s.all[u.Machine] = known
			continue
		}
		s.all[u.Machine] = &missed{Unlisted: u}
		s.look(u.Machine)
	}
}

// noteSick takes in what listings name as unhealthy.
func (s *missing) noteSick(unhealthy []orphan.Unhealthy) {
	before := s.sick
	s.sick = make(map[object.Key]*sick)
	for _, u := range unhealthy {
		if known := before[u.Machine]; known != nil && known.Unhealthy == u {
			s.sick[u.Machine] = known
			continue
		}
		s.sick[u.Machine] = &sick{Unhealthy: u}
		s.look(u.Machine)
	}
}

// look has a machine looked at.
func (s *missing) look(key object.Key) {
	if s.wake != nil {
		s.wake(key)
	}
}

// unhealthy reports whether the last listing named a machine's VM as unhealthy, and the
// provider was not asked since.
func (s *missing) unhealthy(m *machine.Machine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.sick[m.Key]
	return known != nil && !known.asked && known.UID == m.UID && known.ProviderID == m.Spec.ProviderID
}

// of is what a machine's own pass is to know; nil: its VM is not missing.
func (s *missing) of(m *machine.Machine) *machine.MissingVM {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[m.Key]
	if known == nil || known.found || known.UID != m.UID || known.ProviderID != m.Spec.ProviderID {
		return nil
	}
	return &machine.MissingVM{Since: known.Since, NotFound: known.notFound}
}

// asked takes in how GetMachineStatus was answered for a machine.
func (s *missing) asked(key object.Key, answer codes.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.sick[key]; known != nil {
		known.asked = true
	}
	if known := s.all[key]; known != nil {
		known.notFound = answer == codes.NotFound
		known.found = !known.notFound
	}
}

// watched is since when this process watches its machines: since its first
// decision about one, which its caches have to be filled for, with API servers
// that answer. Nothing of it is stored.
//
// A process that is stopped for a while, by SIGSTOP or together with its VM, has
// not watched meanwhile. It notices by its clock: it beats as long as it runs,
// also while there is nothing to do, and this beat is late. A decision that comes
// before the beat notices it too.
type watched struct {
	mu     sync.Mutex
	from   time.Time
	most   time.Duration // the longest time between two beats in which it was not stopped
	beaten time.Time     // when it beat last; zero: it does not beat, and no stop is noticed
}

// beatsOfGrace is how often a process beats in a grace. One that was stopped for
// longer than a grace has not watched.
const beatsOfGrace = 4

// since returns when watching began. It begins now if it has not yet, or if the
// process was stopped.
func (w *watched) since(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	if w.from.IsZero() {
		w.from = now
	}
	return w.from
}

// notice restarts the watch if the process was stopped. A clock that was set back
// says nothing. It compares wall clocks, since a monotonic clock may stop with a
// VM that is suspended.
func (w *watched) notice(now time.Time) {
	if w.beaten.IsZero() || now.Round(0).Sub(w.beaten) <= w.most {
		return
	}
	w.beaten = now.Round(0)
	if !w.from.IsZero() {
		w.from = now
	}
}

// beat says that the process runs, and how long the next beat may take to come.
func (w *watched) beat(now time.Time, most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	w.beaten, w.most = now.Round(0), most
}

// forget is for a Run that follows another: no process has watched in between.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.beaten = time.Time{}, time.Time{}
}

// specs splits the specs of classes by what the driver declares, once a version
// of a class: all machines that are made from it share the strings.
type specs struct {
	fields []string // nil: the driver can't update VMs

	mu    sync.Mutex
	split map[object.Key]splitSpec
}

type splitSpec struct {
	uid, version string
	spec         *machine.VMSpec
}

func newSpecs(d driver.Driver) *specs {
	return &specs{fields: slices.Clone(driver.UpdatableFields(d)), split: make(map[object.Key]splitSpec)}
}

// of is the split spec of a class; nil: there is no class, or nothing can be
// updated.
func (s *specs) of(c *machine.Class) *machine.VMSpec {
	if c == nil || len(s.fields) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.split[c.Key]
	if known.spec == nil || known.uid != c.UID || known.version != c.Version {
		spec := machine.SplitSpec(c, s.fields)
		if known.spec != nil && *known.spec == spec {
			spec = *known.spec // for the strings that machines share
		}
		known = splitSpec{c.UID, c.Version, &spec}
		s.split[c.Key] = known
	}
	return known.spec
}

// permits is what hooks were told of the permits for replacement that are in use.
type permits struct {
	options *Options
	mu      sync.Mutex
	told    map[visited][2]int
}

type visited struct {
	kind Kind
	key  object.Key
}

func newPermits(o *Options) *permits { return &permits{options: o, told: make(map[visited][2]int)} }

// wanted reports whether anybody is told.
func (r *permits) wanted() bool {
	return r.options.Policies.Safety != nil && r.options.Hooks.Permits != nil
}

// tell tells how many are in use, unless that was told last.
func (r *permits) tell(kind Kind, holder *object.Meta, replicas int32, fleet []*machine.Machine) {
	used, limit := replacement.SlotsInUse(
		holder, replicas, fleet, r.options.Policies.Safety, r.options.Runtime.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	at, now := visited{kind, holder.Key}, [2]int{used, limit}
	if last, known := r.told[at]; !known || last != now {
		r.told[at] = now
		r.options.Hooks.Permits(kind, holder.Key, used, limit)
	}
}

// forget tells that an object is gone that something was told of.
func (r *permits) forget(kind Kind, key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.told[visited{kind, key}]; known {
		delete(r.told, visited{kind, key})
		r.options.Hooks.Permits(kind, key, 0, 0)
	}
}
