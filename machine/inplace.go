package machine

// InPlaceRequest is what a rollout that updates machines in place asks of one
// of them. Whoever owns the machine writes it.
type InPlaceRequest string

// The requests.
const (
	// InPlaceNone asks for nothing. To a machine whose update is done it says
	// that it is where it belongs and may work again; to one whose update is
	// under way, that it was withdrawn.
	InPlaceNone InPlaceRequest = ""
	// InPlaceCandidate says that the machine is to be updated at some time.
	InPlaceCandidate InPlaceRequest = "Candidate"
	// InPlaceSelected says that it is the machine's turn.
	InPlaceSelected InPlaceRequest = "Selected"
)
