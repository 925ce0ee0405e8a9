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

// hints are reasons to look for orphans of a class, VMs without a machine, earlier than
// scheduled. Losing them costs time only.
type hints struct {
	mu  sync.Mutex
	all []orphan.Hint
}

// add remembers a hint. If machines of a class have disappeared, the first hint is kept until open drops
// it. For a machine with several VMs the latest hint is kept.
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

// open drops the hints of classes that are gone, or whose VMs were listed since, and returns the others.
func (h *hints) open(classes map[object.Key]orphan.Class) []orphan.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(hint orphan.Hint) bool {
		class, there := classes[hint.Class]
		return !there || class.Asked.After(hint.At)
	})
	return slices.Clone(h.all)
}

// missing tells the passes of machines which VMs the last listing lacked, or called unhealthy. Losing it
// costs time only.
type missing struct {
	mu   sync.Mutex
	all  map[object.Key]*missed
	sick map[object.Key]*sick
	wake func(object.Key) // queues a machine; nil: it is looked at in its next pass
}

// missed is a machine whose VM is missing, and what the provider said when asked.
type missed struct {
	orphan.Unlisted
	found    bool // it exists, or that is not known: the listing has no consequence
	notFound bool
}

// sick is a machine whose VM is unhealthy in the last listing.
type sick struct {
	orphan.Unhealthy
	asked bool // the provider was asked since that listing
}

// wakes sets the function that queues machines whose VMs are missing or unhealthy.
func (s *missing) wakes(wake func(object.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// note records which VMs the last listings lacked, or called unhealthy. If a later listing says the same of
// a machine, the provider is asked again.
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

// noteSick records which VMs the last listings called unhealthy.
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

// look queues a machine.
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

// of returns what the pass of a machine has to know. Nil: its VM is not missing.
func (s *missing) of(m *machine.Machine) *machine.MissingVM {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.all[m.Key]
	if known == nil || known.found || known.UID != m.UID || known.ProviderID != m.Spec.ProviderID {
		return nil
	}
	return &machine.MissingVM{Since: known.Since, NotFound: known.notFound}
}

// asked records the answer of GetMachineStatus for a machine.
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

// watched knows since when this process has watched its machines: since its first decision about one.
// By then its caches are filled, and the API servers answer. Nothing of it is stored.
//
// A process that is stopped for a while, by SIGSTOP or together with its VM, does not watch meanwhile. It
// notices that by its clock: it beats regularly, even if there is nothing to do, and after a stop the
// next beat is late. A decision before that beat notices it, too.
type watched struct {
	mu     sync.Mutex
	from   time.Time
	most   time.Duration // if more time passes between two beats, the process was stopped
	beaten time.Time     // the last beat; zero: there are none, and no stop is noticed
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

// beat records that the process runs, and how long the next beat may take to come.
func (w *watched) beat(now time.Time, most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	w.beaten, w.most = now.Round(0), most
}

// forget is called at the beginning and the end of a Run: the process does not watch between two.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.beaten = time.Time{}, time.Time{}
}

// specs splits the specs of classes by what the driver declares, once for each version of a class: all
// machines that are made from it share the strings.
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

// of returns the split spec of a class. Nil: there is no class, or nothing can be updated.
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
			spec = *known.spec // keep the strings that machines share
		}
		known = splitSpec{c.UID, c.Version, &spec}
		s.split[c.Key] = known
	}
	return known.spec
}

// permits calls Hooks.Permits when the number of permits for replacement that are in use has changed.
type permits struct {
	options  *Options
	mu       sync.Mutex
	reported map[permitHolder][2]int // the last used and limit
}

type permitHolder struct {
	kind Kind
	key  object.Key
}

func newPermits(o *Options) *permits {
	return &permits{options: o, reported: make(map[permitHolder][2]int)}
}

// wanted reports whether there is a hook to call.
func (r *permits) wanted() bool {
	return r.options.Policies.Safety != nil && r.options.Hooks.Permits != nil
}

// report calls the hook if the numbers have changed since the last time.
func (r *permits) report(kind Kind, holder *object.Meta, replicas int32, fleet []*machine.Machine) {
	used, limit := replacement.SlotsInUse(
		holder, replicas, fleet, r.options.Policies.Safety, r.options.Runtime.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	at, now := permitHolder{kind, holder.Key}, [2]int{used, limit}
	if last, known := r.reported[at]; !known || last != now {
		r.reported[at] = now
		r.options.Hooks.Permits(kind, holder.Key, used, limit)
	}
}

// forget calls the hook with zeros for an object that is gone, if the hook was called for it before.
func (r *permits) forget(kind Kind, key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.reported[permitHolder{kind, key}]; known {
		delete(r.reported, permitHolder{kind, key})
		r.options.Hooks.Permits(kind, key, 0, 0)
	}
}
