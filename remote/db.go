package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/record"
)

// Options of Open. The zero Options have good defaults.
type Options struct {
	// Now is the clock that stamps CreatedAt and DeletedAt. Nil: time.Now.
	Now func() time.Time
	// CallTimeout bounds each call of the database. Zero: DefaultCallTimeout.
	CallTimeout time.Duration
	// Seal encrypts the records of secrets. Nil: they are stored as they are, and sealed ones can't be read.
	Seal record.Sealer
	// Alarm receives what an operator should know, when it begins and when it ends. It must return soon. Nil:
	// nobody is told; Health has it as well.
	Alarm func(Alarm)
}

// DefaultCallTimeout is the CallTimeout of Options that name none.
const DefaultCallTimeout = 2 * time.Second

// Alarm is something that an operator should know.
type Alarm struct {
	Kind AlarmKind
	// Err says what is wrong. Nil: that has ended.
	Err error
}

// AlarmKind says what kind of Alarm it is.
type AlarmKind string

// The alarms.
const (
	// AlarmAway: the database does not answer, so that the cache does not show changes.
	AlarmAway AlarmKind = "Away"
	// AlarmUnreadable: this program can't read a record. It does not lead, and lists of that kind fail.
	AlarmUnreadable AlarmKind = "Unreadable"
	// AlarmLost: this process had to stop leading. It ends with the next term of this process.
	AlarmLost AlarmKind = "Lost"
	// AlarmLostWrites: the database has lost writes. It ends when all was read again.
	AlarmLostWrites AlarmKind = "LostWrites"
	// AlarmSpace: the database has little space left.
	AlarmSpace AlarmKind = "Space"
	// AlarmFull: the database has refused a write for lack of space. It ends with the next write that succeeds.
	AlarmFull AlarmKind = "Full"
)

// DB is a database with a collection for each kind. Open makes it. It is safe for concurrent use.
type DB struct {
	engine Engine
	Options

	kinds       map[string]kind
	machines    *Collection[*machine.Machine]
	classes     *Collection[*machine.Class]
	secrets     *Collection[*machine.Secret]
	sets        *Collection[*machineset.Set]
	deployments *Collection[*deployment.Deployment]
	pools       *Collection[*machinepool.Pool]
	nodes       *Collection[*machine.Node]

	life context.Context //nolint:containedctx // ended by Close; ends all watches
	end  context.CancelFunc
	idle chan struct{} // closed when nothing follows the database any more

	mu         sync.Mutex
	alarms     map[AlarmKind]error
	untold     []Alarm // that somebody is telling
	unreadable map[Key]*UnreadableError
	term       *lead.Held // nil: this process does not lead
	shown      time.Time  // when the database has last shown something
}

// kind is a collection of any kind.
type kind interface {
	replace(all []Record, at uint64)
	show(r Record)
	forget()
	synced() <-chan struct{}
	check(r Record) error
	transcribe(exported []byte) (object.Key, []byte, error)
	count() int
}

// Open returns a DB that keeps its objects in engine. It checks the layout of the database; an empty one
// gets that of this program. The error is a *LayoutError, or that of the engine.
func Open(ctx context.Context, engine Engine, o Options) (*DB, error) {
	db, err := open(ctx, engine, o)
	if err != nil {
		return nil, err
	}
	db.openKinds()
	db.start()
	return db, nil
}

func open(ctx context.Context, engine Engine, o Options) (*DB, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Alarm == nil {
		o.Alarm = func(Alarm) {}
	}
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	db := &DB{
		engine: engine, Options: o, kinds: make(map[string]kind), idle: make(chan struct{}),
		alarms: make(map[AlarmKind]error), unreadable: make(map[Key]*UnreadableError),
	}
	if err := db.checkLayout(ctx, true); err != nil && !errors.Is(err, ErrImporting) {
		return nil, err
	}
	return db, nil
}

// OpenKind returns a DB with objects of one kind alone, for programs with a kind of their own, and its
// collection. Neither ManagerOptions nor the collections of other kinds are there.
func OpenKind[T object.Object[T]](ctx context.Context, engine Engine, o Options, kind string, indexes map[store.Index]func(T) []string) (*DB, *Collection[T], error) {
	db, err := open(ctx, engine, o)
	if err != nil {
		return nil, nil, err
	}
	c := collection(db, kind, indexes, nil)
	db.start()
	return db, c, nil
}

func (db *DB) start() {
	db.life, db.end = context.WithCancel(context.Background())
	go db.follow()
}

// Close ends all watches, and waits until nothing follows the database any more. Cached reads fail with
// ErrClosed from then on. It does not close the engine.
func (db *DB) Close() {
	db.end()
	<-db.idle
}

// layout is that of this program: the kinds and the form of their records.
const layout = 1

// about is what a database says about itself, under aboutKey.
type about struct {
	Layout    int
	Importing bool `json:",omitempty"`
}

var aboutKey = Key{Kind: "about", Key: object.Key{Name: "layout"}}

// checkLayout returns an error if this program must not write to the database. A database that says nothing
// about itself gets a layout, if create is true.
func (db *DB) checkLayout(ctx context.Context, create bool) error {
	r, err := call(ctx, db, func(ctx context.Context) (Record, error) { return db.engine.Get(ctx, aboutKey) })
	if err == nil && r.Content == nil && create {
		r, err = call(ctx, db, func(ctx context.Context) (Record, error) {
			return db.engine.Swap(ctx, Swap{Key: aboutKey, Content: aboutContent(false)})
		})
		if errors.Is(err, store.ErrConflict) { // another process was faster
			return db.checkLayout(ctx, false)
		}
	}
	if err != nil {
		return fmt.Errorf("the layout of the database: %w", err)
	}
	return layoutOf(r)
}

func aboutContent(importing bool) []byte {
	content, _ := json.Marshal(about{Layout: layout, Importing: importing}) // plain fields
	return content
}

func layoutOf(r Record) error {
	var a about
	if err := json.Unmarshal(r.Content, &a); err != nil {
		return &UnreadableError{r.Key, record.ErrContent}
	}
	switch {
	case a.Layout != layout:
		return &LayoutError{Found: a.Layout, Known: layout}
	case a.Importing:
		return ErrImporting
	}
	return nil
}

// Lead waits until this process leads, and calls do for each of its terms, see lead.Run. It leads only while it
// can read all records, and knows the layout of the database. When a term begins, the cache shows all that
// earlier leaders have written.
func (db *DB) Lead(ctx context.Context, o lead.Options, do func(*lead.Held) error) error {
	notify := o.Notify
	o.Notify = func(e lead.Event) {
		switch e.Kind {
		case lead.Lost:
			db.raise(AlarmLost, e.Err)
		case lead.Elected:
			db.raise(AlarmLost, nil)
		case lead.Standby, lead.Released, lead.Failed:
		}
		if notify != nil {
			notify(e)
		}
	}
	return lead.Run(ctx, lease{db.engine.Lease(), db}, o, func(term *lead.Held) error {
		db.setTerm(term)
		defer db.setTerm(nil)
		if err := db.mayLead(); err != nil { // it was read while the lease was taken
			term.End(fmt.Errorf("%w: %w", lead.ErrLost, err))
			return lead.ErrLost
		}
		return do(term)
	})
}

// lease is the engine's, which only a process takes that can manage the fleet.
type lease struct {
	lead.Lease
	db *DB
}

// Take implements lead.Lease.
func (l lease) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	if err := l.db.mayLead(); err != nil {
		return 0, err
	}
	if err := l.db.checkLayout(ctx, false); err != nil {
		return 0, err
	}
	token, err := l.Lease.Take(ctx, id, ttl)
	if err != nil {
		l.db.noteFull(err)
		return 0, err
	}
	if err = l.db.engine.Fresh(ctx); err != nil {
		back, done := context.WithTimeout(context.WithoutCancel(ctx), l.db.CallTimeout) // else it expires
		defer done()
		return 0, errors.Join(err, l.Lease.Release(back, token))
	}
	return token, nil
}

// mayLead returns why this process can't manage the fleet.
func (db *DB) mayLead() error {
	for _, k := range db.kinds {
		select {
		case <-k.synced():
		default:
			return fmt.Errorf("%w: not all objects were read yet", ErrBehind)
		}
	}
	if all := db.Unreadable(); len(all) > 0 {
		return fmt.Errorf("%d records can't be read: %w", len(all), all[0])
	}
	return nil
}

func (db *DB) setTerm(term *lead.Held) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.term = term
}

// Leading returns the present term of this process, and nil if it does not lead.
func (db *DB) Leading() *lead.Held {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.term
}

// endTerm ends the present term, if there is one.
func (db *DB) endTerm(why error) {
	if term := db.Leading(); term != nil {
		term.End(fmt.Errorf("%w: %w", lead.ErrLost, why))
	}
}

// Unreadable returns the records that this program can't read, in the order of their keys.
func (db *DB) Unreadable() []*UnreadableError {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.SortedFunc(maps.Values(db.unreadable), func(a, b *UnreadableError) int {
		return cmp.Compare(a.Key.String(), b.Key.String())
	})
}

// unreadableAt returns the error of a record that can't be read, or nil.
func (db *DB) unreadableAt(k Key) *UnreadableError {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.unreadable[k]
}

// unreadableOf returns the first of the unreadable records of a kind, and how many there are.
func (db *DB) unreadableOf(kind string) (first *UnreadableError, n int) {
	for _, u := range db.Unreadable() {
		if u.Key.Kind == kind {
			if n++; first == nil {
				first = u
			}
		}
	}
	return first, n
}

// noteUnreadable records whether a record can be read.
func (db *DB) noteUnreadable(k Key, cause error) {
	db.mu.Lock()
	_, before := db.unreadable[k]
	delete(db.unreadable, k)
	if cause != nil {
		db.unreadable[k] = &UnreadableError{k, cause}
	}
	left := len(db.unreadable)
	db.mu.Unlock()
	switch {
	case cause != nil:
		err := &UnreadableError{k, cause}
		db.raise(AlarmUnreadable, err)
		db.endTerm(err)
	case before && left == 0:
		db.raise(AlarmUnreadable, nil)
	}
}

// raise calls Alarm when something begins or ends to be wrong, in that order. If another goroutine calls it at present,
// that one makes this call as well.
func (db *DB) raise(k AlarmKind, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	before := db.alarms[k]
	if err == nil {
		delete(db.alarms, k)
	} else {
		db.alarms[k] = err
	}
	if (before == nil) == (err == nil) {
		return
	}
	if db.untold = append(db.untold, Alarm{k, err}); len(db.untold) > 1 {
		return
	}
	for ; len(db.untold) > 0; db.untold = db.untold[1:] {
		db.tell(db.untold[0])
	}
}

// tell calls Alarm without db.mu, which the caller holds.
func (db *DB) tell(a Alarm) {
	db.mu.Unlock()
	defer db.mu.Lock()
	db.Alarm(a)
}

// noteFull notes whether a write was refused for lack of space; nil: it was made.
func (db *DB) noteFull(err error) {
	if err == nil || errors.Is(err, ErrFull) {
		db.raise(AlarmFull, err)
	}
}

// Health is how a DB stands.
type Health struct {
	// Ready says that all objects were read once, so that reads are answered.
	Ready bool
	// Shown is when the database has last answered.
	Shown time.Time
	// Leading says that this process leads.
	Leading bool
	// Alarms are what is wrong at present.
	Alarms map[AlarmKind]error
	// Objects are how many there are, by kind.
	Objects map[string]int
}

// Health returns how the DB stands. It asks nobody.
func (db *DB) Health() Health {
	h := Health{Ready: true, Objects: make(map[string]int)}
	for name, k := range db.kinds {
		select {
		case <-k.synced():
		default:
			h.Ready = false
		}
		h.Objects[name] = k.count()
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	h.Shown, h.Leading, h.Alarms = db.shown, db.term != nil, maps.Clone(db.alarms)
	return h
}

// The pause before the database is followed again, after that broke, doubles from firstPause to lastPause.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// follow keeps the caches up to date until the DB is closed.
func (db *DB) follow() {
	defer close(db.idle)
	pause := firstPause
	for db.life.Err() == nil {
		s := &sink{db: db}
		err := db.engine.Follow(db.life, s)
		if s.showed {
			pause = firstPause
		}
		if db.life.Err() == nil && err != nil {
			db.raise(AlarmAway, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-db.life.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, lastPause)
	}
}

// sink is where one Follow shows the records of all kinds.
type sink struct {
	db     *DB
	showed bool // the database has answered
}

// answered notes that the database has answered.
func (s *sink) answered() {
	s.showed = true
	s.db.raise(AlarmAway, nil)
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	s.db.shown = s.db.Now()
}

// Alive implements Sink.
func (s *sink) Alive() { s.answered() }

// Space implements Sink.
func (s *sink) Space(err error) { s.db.raise(AlarmSpace, err) }

// Replace implements Sink.
func (s *sink) Replace(all []Record, at uint64) {
	parts := make(map[string][]Record)
	keys := make(map[Key]bool)
	for _, r := range all {
		parts[r.Key.Kind] = append(parts[r.Key.Kind], r)
		keys[r.Key] = true
	}
	for _, u := range s.db.Unreadable() {
		if !keys[u.Key] {
			s.db.noteUnreadable(u.Key, nil)
		}
	}
	for name, k := range s.db.kinds {
		k.replace(parts[name], at)
	}
	for name, part := range parts {
		if s.db.kinds[name] == nil {
			for _, r := range part {
				s.other(r)
			}
		}
	}
	s.answered()
	s.db.raise(AlarmLostWrites, nil)
}

// Show implements Sink.
func (s *sink) Show(r Record) {
	if k := s.db.kinds[r.Key.Kind]; k != nil {
		k.show(r)
	} else {
		s.other(r)
	}
	s.answered()
}

// other takes a record that is of none of the kinds.
func (s *sink) other(r Record) {
	switch {
	case r.Content == nil:
		s.db.noteUnreadable(r.Key, nil)
	case r.Key == aboutKey:
		if err := layoutOf(r); err != nil {
			s.db.endTerm(err)
		}
	default:
		s.db.noteUnreadable(r.Key, errUnknownKind)
	}
}

var errUnknownKind = errors.New("is of a kind that this program does not know")

// Forget implements Sink.
func (s *sink) Forget(why error) {
	err := fmt.Errorf("%w: %w", ErrLostWrites, why)
	s.db.raise(AlarmLostWrites, err)
	s.db.endTerm(err)
	for _, k := range s.db.kinds {
		k.forget()
	}
}

// call makes a call of the engine, within CallTimeout.
func call[R any](ctx context.Context, db *DB, do func(context.Context) (R, error)) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	within, done := context.WithTimeout(ctx, db.CallTimeout)
	defer done()
	result, err := do(within)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return none, ctx.Err()
	case within.Err() != nil:
		return none, fmt.Errorf("%w: %v", ErrNoAnswer, db.CallTimeout)
	}
	return none, err
}
