package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// These are the errors of calls that Calls no longer waits for, or does not make.
var (
	// ErrOverdue is in the error of a call that has not returned although its context has ended. The
	// call goes on, and may still take effect. Its code is CANCELED or DEADLINE_EXCEEDED.
	ErrOverdue = errors.New("the driver has not returned, although its context has ended")
	// ErrUnderWay is in the error of a call that was not made because another one about the same
	// object has not returned. Its code is ABORTED.
	ErrUnderWay = errors.New("an earlier call about it has not returned")
	// ErrTooManyOverdue is in the error of a call that was not made because too many are overdue. Its
	// code is UNAVAILABLE.
	ErrTooManyOverdue = errors.New("too many calls of the driver have not returned")
)

// CallsOptions say how long calls may take. The zero value sets no limit.
type CallsOptions struct {
	// Timeouts are the deadlines of calls, as Deadline gives them.
	Timeouts Timeouts
	// Grace is how long after the end of its context a call may take to return. Not positive: no time.
	Grace time.Duration
	// After is the clock for Grace; time.After serves. Nil: there is no grace.
	After func(time.Duration) <-chan time.Time
	// Most is how many calls may be overdue, and a fourth of it how many of one class. While there are
	// so many, no call is made. Those under way by then may still become overdue. Not positive: 512.
	Most int
	// Now is the clock for OverdueCall.Began; time.Now serves. Nil: Began is zero.
	Now func() time.Time
	// Await calls the function do, and returns true when that has returned. It returns false if it has
	// not returned within grace after the end of ctx; it then goes on. limit is the time until the
	// deadline that ctx was given, for clocks other than the process's; not positive: none. Nil: ctx
	// and After are used.
	Await func(ctx context.Context, limit, grace time.Duration, do func()) bool
	// Notify is called when a call becomes overdue, and when an overdue call returns. overdue is how many
	// calls are overdue then. One goroutine at a time calls Notify, which must not block. May be nil.
	Notify func(c OverdueCall, overdue int)
}

// OverdueCall is a call whose caller no longer waits for it.
type OverdueCall struct {
	CallInfo
	Began time.Time
	// Returned reports whether it has returned. Code is the code of its error then.
	Returned bool
	Code     codes.Code
}

// Calls tracks the calls of one or several drivers that are under way. If a driver ignores its
// context, Calls returns to the caller without the driver's answer. Make it with NewCalls.
//
// Such a call is overdue: it can't be ended, and goes on. Calls keeps these rules:
//
//   - One call about an object is made at a time, overdue ones included. An object is a machine or
//     a pool, by its namespace and name; for ListMachines, ListPools and
//     GenerateMachineClassForMigration it is the class. GetVolumeIDs is about none.
//   - If an overdue CreateMachine or CreatePool succeeds in the end, the next such call for the same
//     machine or pool, by its UID, is answered with that and not made. If another call that
//     changes the object comes first, the answer is dropped. An answer of any other call is dropped, since
//     the call can be repeated.
//   - The number of overdue calls is bounded, see CallsOptions.Most.
type Calls struct {
	options CallsOptions

	mu      sync.Mutex
	busy    map[callee]*underWay   // a call about each
	overdue map[*underWay]struct{} // of all calls
	late    map[callee]lateAnswer  // to calls that were overdue
	serial  int                    // of the latest late answer

	reporting sync.Mutex // held while Notify is called; locked before mu
}

// callee is what a call is about. One call at a time is made about each.
type callee struct {
	kind   string
	object object.Key // zero: a method of a class
	method Method
	class  object.Key
}

// underWay is a call that has not returned.
type underWay struct {
	OverdueCall
	of    callee
	uid   string
	reuse bool // a late success is the answer to the next such call

	response any // once it has returned
	err      error
}

// lateAnswer is the success of a call that was overdue.
type lateAnswer struct {
	uid      string
	serial   int // rises with each late answer
	response any
}

const (
	defaultMost  = 512
	shareOfClass = 4 // a class may have a fourth of what may be overdue
)

// NewCalls returns a set without calls.
func NewCalls(o CallsOptions) *Calls {
	if o.Most <= 0 {
		o.Most = defaultMost
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} }
	}
	if o.Await == nil {
		o.Await = o.await
	}
	return &Calls{
		options: o, busy: make(map[callee]*underWay), overdue: make(map[*underWay]struct{}), late: make(map[callee]lateAnswer),
	}
}

// Track returns a driver whose calls c tracks. It belongs outside of Recover: a panic in a call that is
// not recovered ends the process. What is inside must not use a response after the call returned.
func Track(d Driver, c *Calls) Driver { return &intercepted{inner: d, calls: c} }

// Tracked makes one call, which c tracks. Track uses it, and so does pooldriver.Track. uid is the UID
// of info.Object; empty: it has none. creates says that a late success is the answer to the next call
// of the method for that UID.
func Tracked[Q, R any](
	ctx context.Context, c *Calls, info CallInfo, uid string, creates bool, req Q, call func(context.Context, Q) (*R, error),
) (*R, error) {
	u := &underWay{OverdueCall: OverdueCall{CallInfo: info, Began: c.options.Now()}, of: calleeOf(&info), uid: uid, reuse: creates && uid != ""}
	if late, err := c.begin(u); late != nil || err != nil {
		response, _ := late.(*R)
		return response, err
	}
	limit, cancel := c.options.Timeouts.of(info.Method), context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	returned := c.options.Await(ctx, limit, c.options.Grace, func() {
		var response *R
		var err error = codes.New(codes.Internal, "the driver called runtime.Goexit in "+info.Method.String()) // unless call returns
		defer func() {
			c.returned(u, response, err)
			cancel() // not before: the wait would end with its context, and the call be overdue
		}()
		response, err = call(ctx, req)
	})
	if returned || !c.giveUp(u) {
		response, _ := u.response.(*R)
		return response, u.err
	}
	code := codes.DeadlineExceeded
	if ctx.Err() != nil {
		code = codes.Of(ctx.Err())
	}
	return nil, codes.Wrap(code, ErrOverdue, info.Method.String()+" has not returned, although it was told to end: it may still take effect")
}

func calleeOf(info *CallInfo) callee {
	if info.Object != (object.Key{}) {
		return callee{kind: info.Kind, object: info.Object}
	}
	return callee{kind: info.Kind, method: info.Method, class: info.Class}
}

// exclusive reports whether the call is about an object or a class. One call at a time is made about
// each.
func (c callee) exclusive() bool { return c.object != (object.Key{}) || c.class != (object.Key{}) }

// begin enters a call. If the call is not to be made, begin returns its answer: that of an earlier,
// overdue call, or an error.
func (c *Calls) begin(u *underWay) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.busy[u.of]; before != nil {
		return nil, codes.Wrap(codes.Aborted, ErrUnderWay, u.Method.String()+" was not called: "+before.Method.String()+" is under way")
	}
	if late, has := c.late[u.of]; has && !u.ReadOnly {
		delete(c.late, u.of)
		if u.reuse && late.uid == u.uid {
			return late.response, nil
		}
	}
	if c.full(u.Class) {
		return nil, codes.Wrap(codes.Unavailable, ErrTooManyOverdue, u.Method.String()+" was not called: too many calls of the driver have not returned")
	}
	if u.of.exclusive() {
		c.busy[u.of] = u
	}
	return nil, nil
}

// full reports whether too many calls are overdue to make one of a class.
func (c *Calls) full(class object.Key) bool {
	of := 0
	for u := range c.overdue {
		if u.Class == class {
			of++
		}
	}
	return len(c.overdue) >= c.options.Most || of >= max(1, c.options.Most/shareOfClass)
}

// giveUp makes a call overdue. It returns false if the call has returned meanwhile.
func (c *Calls) giveUp(u *underWay) bool {
	c.mu.Lock()
	if u.Returned {
		c.mu.Unlock()
		return false
	}
	c.overdue[u] = struct{}{}
	report := u.OverdueCall
	c.mu.Unlock()
	c.report(report)
	return true
}

// returned ends a call. Its caller waits for the answer unless the call is overdue.
func (c *Calls) returned(u *underWay, response any, err error) {
	c.mu.Lock()
	u.Returned, u.Code, u.response, u.err = true, codes.Of(err), response, err
	if c.busy[u.of] == u {
		delete(c.busy, u.of)
	}
	if _, overdue := c.overdue[u]; !overdue {
		c.mu.Unlock()
		return
	}
	delete(c.overdue, u)
	if err == nil && u.reuse {
		c.keep(u, response)
	}
	report := u.OverdueCall
	c.mu.Unlock()
	c.report(report)
}

// keep remembers a late answer. At most CallsOptions.Most are kept; the oldest is dropped for a new one.
func (c *Calls) keep(u *underWay, response any) {
	c.serial++
	c.late[u.of] = lateAnswer{u.uid, c.serial, response}
	if len(c.late) <= c.options.Most {
		return
	}
	var oldest callee
	least := c.serial
	for of, late := range c.late {
		if late.serial < least {
			oldest, least = of, late.serial
		}
	}
	delete(c.late, oldest)
}

// report calls Notify. It counts while it holds the lock reporting, so that the last call of Notify gets
// the current number.
func (c *Calls) report(call OverdueCall) {
	if c.options.Notify == nil {
		return
	}
	c.reporting.Lock()
	defer c.reporting.Unlock()
	c.mu.Lock()
	n := len(c.overdue)
	c.mu.Unlock()
	c.options.Notify(call, n)
}

// Forget drops all late answers, including those of calls that are still under way. It is for a
// process that begins to work again when another may have worked meanwhile.
func (c *Calls) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.late)
	for _, u := range c.busy {
		u.reuse = false
	}
}

// Overdue returns the calls that are overdue, the oldest first.
func (c *Calls) Overdue() []OverdueCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]OverdueCall, 0, len(c.overdue))
	for u := range c.overdue {
		all = append(all, u.OverdueCall)
	}
	slices.SortFunc(all, func(a, b OverdueCall) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Object.String(), b.Object.String()),
			cmp.Compare(a.Class.String(), b.Class.String()), cmp.Compare(a.Method.String(), b.Method.String()))
	})
	return all
}

// Refused returns the classes with overdue calls for which no calls are made at present, because too
// many are overdue. The zero key stands for calls without a class.
func (c *Calls) Refused() []object.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []object.Key
	for u := range c.overdue {
		if !slices.Contains(all, u.Class) && c.full(u.Class) {
			all = append(all, u.Class)
		}
	}
	slices.SortFunc(all, func(a, b object.Key) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

// await is the default of Await: it uses ctx and After.
func (o *CallsOptions) await(ctx context.Context, _, grace time.Duration, do func()) bool {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		do()
	}()
	select {
	case <-returned:
		return true
	case <-ctx.Done():
	}
	if o.After == nil || grace <= 0 {
		return false
	}
	select {
	case <-returned:
		return true
	case <-o.After(grace):
		return false
	}
}
