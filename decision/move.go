package decision

import "cmp"

// Event is what moves a state machine from one state to another.
type Event string

// Move is one step of a state machine, which a write carries out. The zero Move stands for none.
type Move struct {
	Table string // the name of the table that has the step
	From  string
	On    Event
	To    string
}

// String returns the step as in "Pending -> Running (joined)".
func (m Move) String() string {
	return cmp.Or(m.From, "new") + " -> " + cmp.Or(m.To, "none") + " (" + string(m.On) + ")"
}
