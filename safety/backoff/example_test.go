package backoff_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/backoff"
)

// The quota of a class is used up. The other machines of the class wait, and then one of them is tried.
func ExampleState() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	p, in := safety.DefaultPolicy(), machine.Inputs{}
	first, second := object.Key{Namespace: "fleet", Name: "web-1"}, object.Key{Namespace: "fleet", Name: "web-2"}

	var class backoff.State // one for each class
	class = class.Answer(first, in, codes.ResourceExhausted, p, 20*time.Minute, now)
	class, turn := class.Ask(second, in, p, now)
	fmt.Println("at once:", turn.Given)

	now = now.Add(class.Wait(now))
	_, turn = class.Ask(second, in, p, now)
	fmt.Println("after the wait:", turn.Given)
	// Output:
	// at once: false
	// after the wait: true
}
