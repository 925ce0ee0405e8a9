package machine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/object"
)

// world is everything that decisions see and change: a store, a provider, a cluster and a clock, each as a
// simple model.
type world struct {
	t      require.TestingT
	now    time.Time
	policy *machine.Policy
	class  *machine.Class // nil: it does not exist
	secret string
	frozen bool
	marks  machine.RolloutMarks // of the machine's set
	// watched is when the process began to watch; zero: it has always watched.
	watched         time.Time
	led             time.Time // when the process began to act in the place of others; zero: there are none
	missing         *machine.MissingVM
	listedUnhealthy bool     // listings report the VM as unhealthy
	fields          []string // the updatable fields that the driver declares
	// cachedClass returns the class as caches show it; nil: they are fresh.
	cachedClass func() *machine.Class
	// updateTurn answers AskUpdate; nil: each update is allowed.
	updateTurn func(*machine.Machine) *machine.UpdateTurn
	// budget answers AskGrant; nil: there is no budget.
	budget func(*machine.Machine) *machine.Grant
	// createPermit answers AskCreate while there is a classBackoff.
	classBackoff *machine.ClassBackoff
	createPermit func(*machine.Machine) *machine.CreatePermit
	states       *fsm.States[machine.Machine]

	store    *storeModel
	provider *providerModel
	cluster  *clusterModel // nil: there is none
	tokens   *tokenModel   // nil: the user data needs none
	owner    ownerModel

	calls     int  // port calls made so far
	killAt    int  // the port call at which the shell dies; 0: none
	killAfter bool // that call takes effect before the shell dies
}

// epoch is when worlds begin. It has a fraction of a second, which stores drop.
var epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

const ours = "m-1" // name of the machine under test

func newWorld(t require.TestingT) *world {
	policy := machine.DefaultPolicy()
	w := &world{
		t: t, now: epoch, policy: policy, states: states(t, policy), secret: "v1",
		class: &machine.Class{
			Meta:     object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}, UID: "class-1", Generation: 1},
			Provider: "model",
		},
	}
	w.store = &storeModel{w: w}
	w.provider = &providerModel{w: w, atomic: true, boot: time.Minute, calls: map[codes.Call]int{}}
	w.cluster = &clusterModel{w: w, nodes: map[string][]*machine.Node{}, registeredBy: map[string]string{}}
	return w
}

// createMachine stores the machine under test, with its finalizer.
func (w *world) createMachine(change ...func(*machine.Machine)) {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: ours}}}
	m.AddFinalizer(machine.Finalizer)
	m.Spec.Class = machine.ClassRef{Name: "small"}
	for _, c := range change {
		c(m)
	}
	w.store.create(m)
}

// edit changes spec and metadata of the machine as its owner would.
func (w *world) edit(change func(*machine.Machine)) {
	m := w.store.live().Clone()
	change(m)
	_, err := w.store.update(m)
	require.NoError(w.t, err)
}

// advance lets time pass, and makes the events happen that are due then.
func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	w.tick()
}

// read is how a node is read live now.
func (w *world) read() decision.Freshness { return readAt(w.now) }

// readAt returns the times of a live read that took no time.
func readAt(at time.Time) decision.Freshness { return decision.Freshness{Began: at, Ended: at} }

// tick makes the events happen that are due.
func (w *world) tick() {
	if w.cluster != nil {
		w.cluster.register()
		w.cluster.agent.work(w)
	}
	w.owner.work(w)
}

// next returns when the next event is due; zero: none is.
func (w *world) next() time.Time {
	var at time.Time
	for _, v := range w.provider.vms {
		if w.cluster != nil && !v.joined && v.boots && (at.IsZero() || v.bootAt.Before(at)) {
			at = v.bootAt
		}
	}
	if w.cluster != nil {
		at = earlier(at, w.cluster.agent.due(w))
	}
	if w.owner.due(w.store.live()) {
		return w.now
	}
	return at
}

var errKilled = errors.New("the shell was killed")

// port makes a port call, unless the shell dies at it. A kill before the call prevents it; a kill after it
// loses its answer.
func (w *world) port(call func()) error {
	w.calls++
	if w.calls == w.killAt {
		if w.killAfter {
			call()
		}
		return errKilled
	}
	call()
	return nil
}

// first is a plan's first move; zero: it has none.
func first(p *machine.Plan) (m machine.Move) {
	if len(p.Moves) > 0 {
		m = p.Moves[0]
	}
	return m
}

// requireMoves checks that a plan's moves explain its write (P44).
func (w *world) requireMoves(o *machine.Observation, plan machine.Plan) {
	require.NoError(w.t, checkMoves(w.states, o, &plan), "%s", plan.Why)
}

// checkMoves returns an error unless the plan's moves lead from the observed machine to the one that its write
// makes.
func checkMoves(states *fsm.States[machine.Machine], o *machine.Observation, plan *machine.Plan) error {
	after := o.Machine.Clone()
	switch write := plan.Write.(type) {
	case *machine.Update:
		after.Meta, after.Spec = write.Machine.CloneMeta(), write.Machine.Spec.Clone()
	case *machine.UpdateStatus:
		after.Status = write.Status.Clone()
	}
	return states.Fire(context.Background(), o.Machine, after, o, plan.Moves...)
}

// states returns the state machines of machines, with the guards of a policy.
func states(t require.TestingT, p *machine.Policy) *fsm.States[machine.Machine] {
	s, err := fsm.New(fsm.Machines(p)...)
	require.NoError(t, err)
	return s
}

var errConflict = errors.New("conflict")

// storeModel holds all versions of one machine, so that reads can be stale. A nil version: the machine did not
// exist.
type storeModel struct {
	w        *world
	versions []*machine.Machine
	writes   int
}

// cached returns the machine as it was so many versions ago; nil: there was none.
func (s *storeModel) cached(lag int) *machine.Machine {
	if len(s.versions) == 0 {
		return nil
	}
	return s.versions[max(0, len(s.versions)-1-lag)]
}

func (s *storeModel) live() *machine.Machine { return s.cached(0) }

// put stores the next version.
func (s *storeModel) put(m *machine.Machine) *machine.Machine {
	m.Version = strconv.Itoa(len(s.versions) + 1)
	s.versions = append(s.versions, m)
	s.writes++
	return m
}

func (s *storeModel) create(m *machine.Machine) {
	m = m.Clone()
	m.UID, m.Generation, m.CreatedAt = "uid-"+m.Name, 1, s.seconds()
	s.put(m)
}

// force stores any machine, as an older program or a bad disk might.
func (s *storeModel) force(m *machine.Machine) { s.put(m.Clone()) }

func (s *storeModel) seconds() time.Time { return s.w.now.Truncate(time.Second) }

func (s *storeModel) current(version string) (*machine.Machine, error) {
	m := s.live()
	if m == nil || m.Version != version {
		return nil, errConflict
	}
	return m, nil
}

// update stores metadata and spec. It returns nil if that removes the machine.
func (s *storeModel) update(m *machine.Machine) (*machine.Machine, error) {
	was, err := s.current(m.Version)
	if err != nil {
		return nil, err
	}
	next := m.Clone()
	next.CopyStatus(was)
	next.Generation, next.CreatedAt, next.DeletedAt = was.Generation, was.CreatedAt, was.DeletedAt
	if !next.SpecEqual(was) {
		next.Generation++
	}
	if was.HasFinalizer(machine.Finalizer) && !next.HasFinalizer(machine.Finalizer) {
		s.checkRelease(was)
	}
	if next.Deleted() && len(next.Finalizers) == 0 {
		s.writes++
		s.versions = append(s.versions, nil)
		return nil, nil
	}
	return s.put(next), nil
}

func (s *storeModel) updateStatus(version string, status machine.Status) (*machine.Machine, error) {
	was, err := s.current(version)
	if err != nil {
		return nil, err
	}
	next := was.Clone()
	next.Status = status.Clone()
	return s.put(next), nil
}

// remove requests the machine's deletion.
func (s *storeModel) remove() {
	m := s.live()
	if m == nil || m.Deleted() {
		return
	}
	next := m.Clone()
	if len(next.Finalizers) == 0 {
		s.writes++
		s.versions = append(s.versions, nil)
		return
	}
	next.DeletedAt = s.seconds()
	next.Generation++
	s.put(next)
}

// checkRelease checks P14 and P16 when the finalizer is removed.
func (s *storeModel) checkRelease(m *machine.Machine) {
	t, p := s.w.t, s.w.provider
	require.Empty(t, p.alive(m), "P14: the finalizer is removed while a VM exists")
	if m.Status.NeverCreated && m.Spec.ProviderID == "" {
		require.False(t, p.vmMayExist, "P16: NeverCreated is set, but a create may have made a VM")
		return
	}
	require.True(t, p.deletedOK, "P16: the finalizer is removed before DeleteMachine has succeeded")
}

func conditions(list []object.Condition) []string {
	var types []string
	for _, c := range list {
		types = append(types, c.Type+" "+string(c.Status))
	}
	return types
}

// vm is a VM at the provider.
type vm struct {
	id, name, node string
	initialized    bool
	visibleAt      time.Time // when status calls begin to show it
	boots          bool      // it will register a node
	bootAt         time.Time
	joined         bool
	unhealthy      string
	tags           map[string]string
	token          int // the token that it was created with
}

// fault is the failure of a call. done says that the call has taken effect nevertheless.
type fault struct {
	code codes.Code
	done bool
}

// providerModel is a provider and its driver.
type providerModel struct {
	w   *world
	vms []*vm

	atomic    bool              // creates make at most one VM of a name, even if status calls do not show it
	lag       time.Duration     // how long status calls do not show a new VM
	boot      time.Duration     // how long a VM takes to register its node; negative: it never does
	noStatus  bool              // GetMachineStatus answers UNIMPLEMENTED
	hasInit   bool              // InitializeMachine is implemented
	differs   bool              // creates fail with ALREADY_EXISTS: a different VM has the name
	nameless  bool              // status answers have no node name
	bare      bool              // UNINITIALIZED comes without a response
	anonymous bool              // InitializeMachine is answered without ID and node name
	blank     func(*machine.VM) // what create leaves out of its answer; may be nil
	note      string
	addresses []machine.Address
	nodeName  string // node name of every VM; empty: "node-" and the machine's name
	faults    func(codes.Call) fault

	class     *machine.Class // argument of the current call
	token     int            // argument of the current call
	made      int            // how many VMs were created
	deletedOK bool           // a DeleteMachine was answered OK or NOT_FOUND
	// vmMayExist says that some create was not refused with one of the refusals.
	vmMayExist bool
	calls      map[codes.Call]int
}

// call makes one driver call for a machine.
func (p *providerModel) call(call codes.Call, m *machine.Machine, id string, do func(*machine.Machine, string) machine.VM) machine.VM {
	require.True(p.w.t, m.HasFinalizer(machine.Finalizer), "P11: a call without our finalizer")
	p.calls[call]++
	note := p.note
	if call == codes.GetMachineStatus {
		note = "" // a status call has no LastKnown
	}
	var f fault
	if p.faults != nil {
		f = p.faults(call)
	}
	created := call == codes.CreateMachine
	if f.code == codes.OK || f.done {
		answer := do(m, id)
		p.vmMayExist = p.vmMayExist || created && answer.Code != codes.AlreadyExists
		if f.code == codes.OK {
			answer.LastKnown = note
			return answer
		}
	}
	p.vmMayExist = p.vmMayExist || created && !slices.Contains(refusals, f.code)
	return machine.VM{Outcome: failed(f.code), LastKnown: note}
}

// refusals are the codes after which a create has made nothing.
var refusals = []codes.Code{
	codes.InvalidArgument, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted, codes.Unauthenticated, codes.Unimplemented,
}

func failed(code codes.Code) machine.Outcome {
	return machine.Outcome{Code: code, Message: "the model was told to fail"}
}

func (p *providerModel) create(m *machine.Machine, _ string) machine.VM {
	if p.differs {
		return machine.VM{Outcome: machine.Outcome{Code: codes.AlreadyExists, Message: "another VM has this name"}}
	}
	var found *vm
	for _, v := range p.vms {
		if v.name == m.Name && (p.atomic || !p.w.now.Before(v.visibleAt)) {
			found = v
		}
	}
	if found == nil {
		p.made++
		found = &vm{
			id: "p://" + strconv.Itoa(p.made), name: m.Name, node: p.nodeName, initialized: !p.hasInit,
			visibleAt: p.w.now.Add(p.lag), boots: p.boot >= 0, bootAt: p.w.now.Add(p.boot),
			token: p.token,
		}
		if found.node == "" {
			found.node = "node-" + m.Name
		}
		found.tags, _ = tagsOf(p.class.ProviderSpec)
		p.vms = append(p.vms, found)
	}
	if p.atomic {
		require.LessOrEqual(p.w.t, len(p.named(m.Name)), 1, "P13: two live VMs")
	}
	answer := p.describe(found)
	if p.blank != nil {
		p.blank(&answer)
	}
	return answer
}

func (p *providerModel) describe(v *vm) machine.VM {
	return machine.VM{ProviderID: v.id, NodeName: v.node, Addresses: p.addresses}
}

func (p *providerModel) status(m *machine.Machine, _ string) machine.VM {
	if p.noStatus {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	var seen []*vm
	for _, v := range p.vms {
		mine := v.name == m.Name && m.Spec.ProviderID == "" || v.id == m.Spec.ProviderID
		if mine && !p.w.now.Before(v.visibleAt) {
			seen = append(seen, v)
		}
	}
	switch len(seen) {
	case 0:
		return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
	case 1:
	default:
		return machine.VM{Outcome: machine.Outcome{Code: codes.OutOfRange, Message: "several VMs have this name"}}
	}
	answer := p.describe(seen[0])
	answer.Unhealthy = seen[0].unhealthy
	if p.nameless {
		answer.NodeName = ""
	}
	if !seen[0].initialized {
		answer.Outcome = machine.Outcome{Code: codes.Uninitialized, Message: "not initialized yet"}
		if p.bare {
			answer = machine.VM{Outcome: answer.Outcome}
		}
	}
	return answer
}

func (p *providerModel) initialize(m *machine.Machine, _ string) machine.VM {
	if !p.hasInit {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	for _, v := range p.vms {
		if v.id == m.Spec.ProviderID || m.Spec.ProviderID == "" && v.name == m.Name {
			v.initialized = true
			answer := p.describe(v)
			if p.anonymous {
				answer.ProviderID, answer.NodeName = "", ""
			}
			return answer
		}
	}
	return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
}

// remove deletes the VM with the given or recorded ID. Without an ID it deletes all VMs of the machine's name.
func (p *providerModel) remove(m *machine.Machine, id string) machine.VM {
	if id == "" {
		id = m.Spec.ProviderID
	}
	kept := p.vms[:0:0]
	for _, v := range p.vms {
		if id != "" && v.id != id || id == "" && v.name != m.Name {
			kept = append(kept, v)
		}
	}
	absent := len(kept) == len(p.vms)
	p.vms = kept
	if absent {
		return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
	}
	return machine.VM{}
}

// alive returns the VMs that a machine is responsible for: the recorded one, or those of its name.
func (p *providerModel) alive(m *machine.Machine) []string {
	var ids []string
	for _, v := range p.vms {
		if v.id == m.Spec.ProviderID || v.name == m.Name && (p.atomic || m.Spec.ProviderID == "") {
			ids = append(ids, v.id)
		}
	}
	return ids
}

func (p *providerModel) named(name string) []string {
	var ids []string
	for _, v := range p.vms {
		if v.name == name {
			ids = append(ids, v.id)
		}
	}
	return ids
}

// update removes the tags of lastApplied from a VM and sets those of the class. All
// other tags are somebody else's and stay.
func (p *providerModel) update(m *machine.Machine, lastApplied string) machine.VM {
	if p.w.fields == nil {
		return machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
	}
	last, lastFixed := tagsOf([]byte(lastApplied))
	want, fixed := tagsOf(p.class.ProviderSpec)
	require.Equal(p.w.t, lastFixed, fixed, "P4: an update of fields that can't be updated")
	for _, v := range p.vms {
		if v.id != m.Spec.ProviderID {
			continue
		}
		for k := range last {
			delete(v.tags, k)
		}
		if v.tags == nil {
			v.tags = map[string]string{}
		}
		for k, value := range want {
			v.tags[k] = value
		}
		return machine.VM{}
	}
	return machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
}

// tagsOf reads a provider spec of the model: its tags, which can be updated, and the rest.
func tagsOf(spec []byte) (tags map[string]string, fixed string) {
	var read struct {
		Size string            `json:"size"`
		Tags map[string]string `json:"tags"`
	}
	if json.Unmarshal(spec, &read) != nil {
		return nil, string(spec)
	}
	return read.Tags, read.Size
}

// tokenModel makes bootstrap tokens. A VM may join only if it was created with its machine's token, and only
// until the token expires.
type tokenModel struct {
	w             *world
	use           machine.TokenUse
	byUID         map[string]bootToken // by the machine's UID
	made          int
	ensured       int // calls that were answered
	removed       int
	removalFailed bool // a removal has failed
	faults        func(machine.Effect) fault
	current       int // the token of the pass at hand; 0: none
}

type bootToken struct {
	value int
	until time.Time
}

// needTokens gives the user data a placeholder for a bootstrap token.
func (w *world) needTokens() *tokenModel {
	w.tokens = &tokenModel{w: w, use: machine.TokenNeeded, byUID: map[string]bootToken{}}
	return w.tokens
}

// tokenUse returns what a new pass sees of the user data.
func (w *world) tokenUse() machine.TokenUse {
	if w.tokens == nil {
		return machine.TokenUnused
	}
	w.tokens.current = 0 // a new pass
	return w.tokens.use
}

// call carries out an effect on a machine's token.
func (m *tokenModel) call(o *machine.Observation, effect machine.Effect) {
	var f fault
	if m.faults != nil {
		f = m.faults(effect)
	}
	answer := &machine.Outcome{}
	if f.code != codes.OK {
		answer = pointer(failed(f.code))
	}
	happens := f.code == codes.OK || f.done
	switch e := effect.(type) {
	case machine.EnsureToken:
		require.Equal(m.w.t, e.Until, e.Until.Truncate(time.Second))
		require.True(m.w.t, e.Until.After(m.w.now), "the token has expired")
		require.True(m.w.t, o.Fresh, "P13: a token for a create that no write of this pass has announced")
		if o.TokenEnsured = answer; happens {
			m.ensure(o.Machine.UID, e.Until)
		}
		if f.code != codes.OK {
			m.current = 0
		}
	case machine.RenewToken:
		require.True(m.w.t, e.Until.After(m.w.now), "the token has expired")
		o.TokenEnsured = answer
		if _, exists := m.byUID[o.Machine.UID]; happens && exists {
			m.ensure(o.Machine.UID, e.Until)
		} else if happens {
			answer.Code = codes.NotFound
		}
	case machine.RemoveToken:
		if o.TokenRemoved = answer; happens {
			delete(m.byUID, o.Machine.UID)
			m.removed++
		}
		m.removalFailed = m.removalFailed || !happens
	}
}

func (m *tokenModel) ensure(uid string, until time.Time) {
	m.ensured++
	has, ok := m.byUID[uid]
	if !ok {
		m.made++
		has.value = m.made
	}
	if until.After(has.until) {
		has.until = until
	}
	m.byUID[uid] = has
	m.current = has.value
}

// tokenForCall returns the token for a call that passes on the user data. It checks that there is one; 0: none
// is needed.
func (m *tokenModel) tokenForCall(o *machine.Observation) int {
	if m == nil || m.use == machine.TokenUnused {
		return 0
	}
	require.Equal(m.w.t, machine.TokenNeeded, m.use, "the user data has a placeholder instead of a token")
	require.NotZero(m.w.t, m.current, "the user data has a placeholder instead of a token")
	require.Equal(m.w.t, m.current, m.byUID[o.Machine.UID].value)
	return m.current
}

// admits reports whether a VM may join. If its token has expired, the VM tries again while its machine is
// waiting.
func (m *tokenModel) admits(v *vm) bool {
	if m == nil || m.use == machine.TokenUnused {
		return true
	}
	has, ok := m.byUID["uid-"+v.name]
	if !ok || has.value != v.token {
		v.boots = false
		return false
	}
	if m.w.now.After(has.until) {
		v.bootAt = m.w.now.Add(time.Minute)
		waiting := m.w.store.live()
		v.boots = waiting != nil && waiting.Status.Phase == machine.PhasePending
		return false
	}
	return true
}
