package deployment

import (
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Conditions that a deployment copies from its sets, each as long as one of them has it.
const (
	// ConditionCreationSlowed: the provider refuses to create machines of a class, and they are
	// tried one by one.
	ConditionCreationSlowed = machineset.ConditionCreationSlowed
	// ConditionReplacementSlowed: machines failed again and again before they
	// ran, and their replacements wait.
	ConditionReplacementSlowed = machineset.ConditionReplacementSlowed
)

// slowed returns conditions with what slows the sets: the new set's condition, or else that of the
// oldest.
func (d *report) slowed(conditions []object.Condition) []object.Condition {
	for _, typ := range [...]string{ConditionCreationSlowed, ConditionReplacementSlowed} {
		found := d.current.condition(typ)
		for i := 0; i < len(d.sets) && found == nil; i++ {
			found = d.sets[i].condition(typ)
		}
		if found == nil {
			conditions = withoutCondition(conditions, typ)
			continue
		}
		told := *found
		told.Since = d.stamp()
		conditions = object.SetCondition(conditions, told)
	}
	return conditions
}

// withoutCondition returns conditions without the one of a type. It returns the same slice if there
// is none.
func withoutCondition(conditions []object.Condition, typ string) []object.Condition {
	if object.FindCondition(conditions, typ) == nil {
		return conditions
	}
	return object.DropCondition(conditions, typ)
}
