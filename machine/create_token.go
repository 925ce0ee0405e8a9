package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A node that joins a cluster shows a bootstrap token, which it finds in its
// VM's user data. Each machine has one of its own: it is there before the create
// is issued, lasts until the creation's time is up, and goes when the node has
// joined, or else with the machine.
//
// Nothing is recorded of it. The token is found by the machine's identity, so
// that a process which comes after a crash makes sure of the same one; to delete
// one that is gone is no mistake. It is made between the announcement and the
// create, and only there: so a machine of which it is recorded that no create was
// issued never had one, and a reader of an old state makes none for a machine
// that has joined meanwhile. It is deleted before the write that ends the need
// for it (Running, or the finalizer's removal), so that a crash in between
// deletes it again. A deletion that fails holds nothing up: the token has an end
// of its own.

// tokenEnd is until when a token is needed.
func (d *decider) tokenEnd() time.Time { return d.creationDeadline().Truncate(time.Second) }

// ensureToken makes sure, before a create hands out the user data, that what is
// put into it is there and lasts.
func (d *decider) ensureToken() (Plan, bool) {
	if d.o.Token != TokenNeeded {
		return Plan{}, false
	}
	answer := d.o.TokenEnsured
	switch {
	case answer == nil:
		until := d.tokenEnd()
		return Plan{Effect: EnsureToken{until}, Why: decision.Why{Reason: reasonEnsureToken, For: until.Sub(d.now)}}, true
	case answer.Code != codes.OK:
		return d.createFailed(StageCreateVM, answer.Code, "bootstrap token: "+answer.Message), true
	}
	return Plan{}, false
}

// noToken refuses to create a VM that would boot with a placeholder for a token.
func (d *decider) noToken() (Plan, bool) {
	if d.o.Token != TokenUnavailable {
		return Plan{}, false
	}
	message := "the user data of class " + d.m.Spec.Class.Name + " has a placeholder for a bootstrap token, and nothing here makes tokens"
	return d.classFailure(codes.InvalidArgument, message), true
}

// findToken finds the token again before a VM is initialized, since that hands
// out the user data too. A machine without one is initialized all the same, and
// so is one whose time is up: no token would last.
func (d *decider) findToken() (Plan, bool) {
	if plan, busy := d.renewToken(); busy {
		return plan, true
	}
	answer := d.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return Plan{}, false
	}
	return d.createFailed(StageInstanceInitialization, answer.Code, "bootstrap token: "+answer.Message), true
}

// renewToken prolongs the token of a VM that exists.
func (d *decider) renewToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenEnsured != nil || !d.now.Before(d.creationDeadline()) {
		return Plan{}, false
	}
	until := d.tokenEnd()
	return Plan{Effect: RenewToken{until}, Why: decision.Why{Reason: reasonRenewToken, For: until.Sub(d.now)}}, true
}

// prolonged tells whether the machine's time to join was prolonged, by a freeze
// or a pause, beyond what its token may have been made for. That the token was
// prolonged since is not recorded: it is made sure of in each pass.
func (d *decider) prolonged() bool { return d.since(d.m.CreatedAt).After(d.m.CreatedAt) }

// awaitRegistration waits for a node that has not registered, with a token that lasts.
func (d *decider) awaitRegistration() Plan {
	if plan, busy := d.renewToken(); busy && d.prolonged() {
		return plan
	}
	return d.renewLater(d.awaitJoin(decision.Why{Reason: reasonNotJoined, Name: d.m.Spec.NodeName}, "its node has not joined"))
}

// renewLater has a plan that ends the pass try again soon where the token could
// not be prolonged. One that does not exist never can.
func (d *decider) renewLater(plan Plan) Plan {
	answer := d.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || plan.At.IsZero() {
		return plan
	}
	if answer.Code != codes.NotFound {
		plan = sooner(plan, d.now.Add(nodeRetry))
	}
	plan.Warn = decision.Why{Reason: reasonTokenNotRenewed, Code: answer.Code, Detail: answer.Message}
	return plan
}

// removeToken deletes the token of a machine that does not need it any more.
func (d *decider) removeToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenRemoved != nil {
		return Plan{}, false
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// tokenLeft is the warning about a token that could not be deleted.
func (d *decider) tokenLeft() decision.Why {
	answer := d.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}
