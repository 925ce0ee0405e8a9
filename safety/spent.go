package safety

import "time"

// Spent records that the deletion of one thing was ordered, by ID, and when. It counts towards the
// policy's Brake for one period.
type Spent struct {
	ID string // of a VM, or of a machine or set
	At time.Time
}
