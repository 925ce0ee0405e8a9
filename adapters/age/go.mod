module github.com/millwright-go/millwright/adapters/age

go 1.25.0

require (
	filippo.io/age v1.3.2
	github.com/millwright-go/millwright v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	filippo.io/hpke v0.4.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/millwright-go/millwright => ../..
