package group

import (
	"encoding/json"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// WriteProvider records in the file of that path that this program is the provider. Supervisors end
// if there is no provider for too long.
func WriteProvider(path string) error {
	self, err := procid.Self()
	if err != nil {
		return err
	}
	return registry.Write(path, self)
}

// ParseProvider reads what WriteProvider has written.
func ParseProvider(text []byte) (id procid.ID, err error) {
	err = json.Unmarshal(text, &id)
	return id, err
}
