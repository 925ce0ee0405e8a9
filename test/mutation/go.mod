// Mistakes in the library, on purpose, and whether its tests notice them. Their own module, so that
// no user of the library downloads them. It is never released.
module github.com/millwright-go/millwright/test/mutation

go 1.25.0

require (
	github.com/millwright-go/millwright v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/qmuntal/stateless v1.7.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/millwright-go/millwright => ../..
