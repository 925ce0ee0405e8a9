package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// A node that joins a cluster shows a bootstrap token, which it finds in its
// VM's user data. Each machine has one of its own: it is there before the create
// is issued, lasts until the creation's time is up, and is removed when the node has
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

// end is until when a token is needed.
func (t token) end() time.Time { return t.creationDeadline().Truncate(time.Second) }

// renew prolongs the token of a VM that exists.
func (t token) renew() (Plan, bool) {
	if t.o.Token != TokenNeeded || t.o.TokenEnsured != nil || !t.now.Before(t.creationDeadline()) {
		return Plan{}, false
	}
	until := t.end()
	return Plan{Effect: RenewToken{until}, Why: decision.Why{Reason: reasonRenewToken, For: until.Sub(t.now)}}, true
}

// prolonged reports whether the machine's time to join was prolonged, by a freeze
// or a pause, beyond what its token may have been made for. That the token was
// prolonged since is not recorded: it is made sure of in each pass.
func (t token) prolonged() bool { return t.since(t.m.CreatedAt).After(t.m.CreatedAt) }

// remove deletes the token of a machine that does not need it any more.
func (t token) remove() (Plan, bool) {
	if t.o.Token != TokenNeeded || t.o.TokenRemoved != nil {
		return Plan{}, false
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// left is the warning about a token that could not be deleted.
func (t token) left() decision.Why {
	answer := t.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}
