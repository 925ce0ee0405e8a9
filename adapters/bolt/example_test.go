package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// This example makes a manager whose objects are in a file, and a backup of the file.
func Example() {
	dir, _ := os.MkdirTemp("", "example")
	defer func() { _ = os.RemoveAll(dir) }()

	db, err := bolt.Open(filepath.Join(dir, "fleet.db"), bolt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()

	options := db.ManagerOptions()          // with the store and the clock of db
	options.Driver = driver.Unimplemented{} // replace it by your driver
	options.Cluster = db                    // only if your nodes are stored nowhere else
	_, err = manager.New(options)
	fmt.Println("manager:", err)

	small := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}}
	_, err = db.Classes().Create(context.Background(), small)
	fmt.Println("create:", err)

	_, err = bolt.Open(filepath.Join(dir, "fleet.db"), bolt.Options{})
	fmt.Println("locked:", errors.Is(err, bolt.ErrLocked))

	f, err := os.OpenFile(filepath.Join(dir, "copy.db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = db.Backup(f)
	err = errors.Join(err, f.Sync(), f.Close())
	fmt.Println("backup:", err)

	// Output:
	// manager: <nil>
	// create: <nil>
	// locked: true
	// backup: <nil>
}
