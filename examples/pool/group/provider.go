package group

import (
	"encoding/json"
	"os"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// WriteProvider records in the file of that path that this program is the provider. Supervisors end
// if there is no provider for too long.
func WriteProvider(path string) error {
	self, err := procid.Self()
	if err != nil {
		return err
	}
	text, err := json.Marshal(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ParseProvider reads what WriteProvider has written.
func ParseProvider(text []byte) (id procid.ID, err error) {
	err = json.Unmarshal(text, &id)
	return id, err
}
