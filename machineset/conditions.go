package machineset

import "github.com/millwright-go/millwright/object"

// withCondition is conditions with c among them; the same slice if it says so
// already, a new one otherwise.
func withCondition(conditions []object.Condition, c object.Condition) []object.Condition {
	have := object.FindCondition(conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return conditions
	}
	return object.SetCondition(conditions, c)
}

// withoutCondition is conditions without those of a type; the same slice if
// there is none.
func withoutCondition(conditions []object.Condition, typ string) []object.Condition {
	if object.FindCondition(conditions, typ) == nil {
		return conditions
	}
	return object.DropCondition(conditions, typ)
}
