package bootstrap_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// admitted returns as whom the server knows the bearer of a token. Nil: it knows no such bearer.
func (w *world) admitted(token string) *authenticationv1.UserInfo {
	w.Helper()
	config := rest.AnonymousClientConfig(server.Config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(w, err)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(w.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return nil
	}
	require.NoError(w, err)
	return &review.Status.UserInfo
}

// TestTokenAdmits: the bearer of the token is admitted, in the requested groups, until the token is
// deleted. A bearer of any other secret half is not.
func TestTokenAdmits(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(20))
	require.Regexp(t, `^[a-z0-9]{6}\.[a-z0-9]{16}$`, token)
	eventually(t, "the token to be known", func() bool { return w.admitted(token) != nil })
	user := w.admitted(token)
	require.Equal(t, "system:bootstrap:"+bootstrap.ID(w.of), user.Username)
	require.Contains(t, user.Groups, group)
	require.Contains(t, user.Groups, "system:bootstrappers")
	require.Nil(t, w.admitted(bootstrap.ID(w.of)+".0000000000000000"))

	require.NoError(t, w.tokens.Delete(t.Context(), w.of))
	require.Nil(t, w.secret())
	eventually(t, "the token to be forgotten", func() bool { return w.admitted(token) == nil })
	require.NoError(t, w.tokens.Delete(t.Context(), w.of), "one that is gone counts as deleted")
}

// TestTokenEnds: an expired token admits no bearer. It does so again once it is given more time.
func TestTokenEnds(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(-1))
	other := newWorld(t)
	valid := other.ensure(soon(20))
	eventually(t, "a token to be known that was made later", func() bool { return other.admitted(valid) != nil })
	require.Nil(t, w.admitted(token))
	require.Equal(t, token, w.ensure(soon(20)), "it stays the same")
	eventually(t, "the token to be valid again", func() bool { return w.admitted(token) != nil })
}

// TestTokenEndsByTheServersClock: for a manager whose clock differs, a token is valid for as long as it
// wanted, no shorter and no longer.
func TestTokenEndsByTheServersClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"a quarter of an hour behind": -15 * time.Minute, "two hours ahead": 2 * time.Hour, "a little behind": -10 * time.Second,
	} {
		for _, pool := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.of.Pool = pool
				now := func() time.Time { return time.Now().Add(ahead) }
				var err error
				w.tokens, err = bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{group}, Now: now})
				require.NoError(t, err)
				token := w.ensure(now().Add(10 * time.Minute))
				end := func() time.Time {
					at, err := time.Parse(time.RFC3339, string(w.secret().Data["expiration"]))
					require.NoError(t, err)
					return at
				}
				require.WithinDuration(t, time.Now().Add(10*time.Minute), end(), time.Minute)
				eventually(t, "the token to be known", func() bool { return w.admitted(token) != nil })

				first := w.secret()
				require.Equal(t, token, w.ensure(now().Add(5*time.Minute)))
				require.Equal(t, first.ResourceVersion, w.secret().ResourceVersion, "it was written")
				renewed, err := w.tokens.Renew(t.Context(), w.of, now().Add(20*time.Minute))
				require.NoError(t, err)
				require.Equal(t, token, string(renewed))
				require.WithinDuration(t, time.Now().Add(20*time.Minute), end(), time.Minute)
			})
		}
	}
}

// TestTokenIsFoundAgain: another process finds the same token, and writes nothing unless it needs
// more time. The token never gets less.
func TestTokenIsFoundAgain(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(20))
	first := w.secret()
	require.Equal(t, "true", string(first.Data["usage-bootstrap-signing"]))
	require.Contains(t, string(first.Data["description"]), w.of.Key.String())
	again, err := bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{group}})
	require.NoError(t, err)
	w.tokens = again
	for _, minutes := range []int{20, 5} {
		require.Equal(t, token, w.ensure(soon(minutes).Add(-10*time.Second)))
		require.Equal(t, first.ResourceVersion, w.secret().ResourceVersion, "it was written")
	}
	until := soon(40)
	require.Equal(t, token, w.ensure(until))
	end := string(w.secret().Data["expiration"])
	require.Equal(t, until.UTC().Format(time.RFC3339), end)
	renewed, err := w.tokens.Renew(t.Context(), w.of, until.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, token, string(renewed))
	require.Equal(t, until.Add(time.Hour).UTC().Format(time.RFC3339), string(w.secret().Data["expiration"]))
	w.ensure(time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, "9999-12-31T00:00:00Z", string(w.secret().Data["expiration"]), "years have four digits")
}

// TestRenewMakesNone: a token that is missing, damaged or of another program is not prolonged.
func TestRenewMakesNone(t *testing.T) {
	w := newWorld(t)
	none := func(what string) {
		t.Helper()
		before := w.secret()
		token, err := w.tokens.Renew(t.Context(), w.of, soon(60))
		require.NoError(t, err, what)
		require.Empty(t, string(token), what)
		require.Equal(t, before, w.secret(), what)
	}
	none("absent")
	w.ensure(soon(20))
	w.change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("Damaged") })
	none("damaged")
	require.NoError(t, w.tokens.Delete(t.Context(), w.of))
	w.foreign()
	none("somebody else's")
}

// foreign stores another program's token under the machine's ID.
func (w *world) foreign() {
	w.Helper()
	_, err := w.client.CoreV1().Secrets("kube-system").Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: w.name()}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{"token-id": []byte(bootstrap.ID(w.of)), "token-secret": []byte("0123456789abcdef")},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// TestTokensOfOthersAreLeftAlone: a token that has the machine's ID and is not its own is neither
// returned nor changed nor deleted.
func TestTokensOfOthersAreLeftAlone(t *testing.T) {
	for _, what := range []string{"without owner", "of another machine", "of another type"} {
		w := newWorld(t)
		if what == "of another type" {
			_, err := w.client.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: w.name(), Annotations: map[string]string{bootstrap.AnnotationOwner: w.of.UID},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
		} else {
			w.foreign()
		}
		if what == "of another machine" {
			w.change(func(s *corev1.Secret) { s.Annotations = map[string]string{bootstrap.AnnotationOwner: "uid-other"} })
		}
		before := w.secret()
		_, err := w.tokens.Ensure(t.Context(), w.of, soon(20))
		require.ErrorIs(t, err, bootstrap.ErrTaken, what)
		require.Equal(t, codes.AlreadyExists, codes.Of(err))
		require.NoError(t, w.tokens.Delete(t.Context(), w.of))
		require.Equal(t, before, w.secret(), what)
	}
}

// TestDamagedTokensAreMended: Ensure repairs what was damaged in a machine's token. If its secret
// half is lost, it is another token.
func TestDamagedTokensAreMended(t *testing.T) {
	for _, damage := range []string{
		"expiration=", "usage-bootstrap-authentication=no", "usage-bootstrap-signing=no",
		"auth-extra-groups=system:bootstrappers:other", "token-id=zzzzzz", "token-secret=UPPER456789abcde", "token-secret=short",
	} {
		key, value, _ := strings.Cut(damage, "=")
		w := newWorld(t)
		until := soon(20)
		token := w.ensure(until)
		want := w.secret()
		w.change(func(s *corev1.Secret) { s.Data[key] = []byte(value) })
		mended := w.ensure(until)
		require.Regexp(t, `^`+bootstrap.ID(w.of)+`\.[a-z0-9]{16}$`, mended)
		lost := key == "token-id" || key == "token-secret"
		require.Equal(t, lost, token != mended, key)
		if !lost && key != "expiration" {
			require.Equal(t, want.Data, w.secret().Data, key)
		}
		eventually(t, "the token to be known: "+key, func() bool { return w.admitted(mended) != nil })
	}
}

// TestTokenThatIsLeaving: a secret that a finalizer holds while it is being deleted is no token any
// more. Ensure waits until it is gone.
func TestTokenThatIsLeaving(t *testing.T) {
	w := newWorld(t)
	w.ensure(soon(20))
	w.change(func(s *corev1.Secret) { s.Finalizers = []string{"example.org/hold"} })
	require.NoError(t, w.tokens.Delete(t.Context(), w.of))
	_, err := w.tokens.Ensure(t.Context(), w.of, soon(20))
	require.Equal(t, codes.Aborted, codes.Of(err))
	token, err := w.tokens.Renew(t.Context(), w.of, soon(20))
	require.NoError(t, err)
	require.Empty(t, string(token))
	w.change(func(s *corev1.Secret) { s.Finalizers = nil })
	w.ensure(soon(20))
}

// TestOneTokenForAMachine: if many callers ensure a machine's token at the same time, all get the
// same one, with the longest of the times.
func TestOneTokenForAMachine(t *testing.T) {
	w := newWorld(t)
	const callers = 4 // one succeeds in each round of conflicts
	got := make([]manager.Token, callers)
	errs := make([]error, callers)
	longest := soon(30 + callers - 1)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			got[i], errs[i] = w.tokens.Ensure(t.Context(), w.of, longest.Add(-time.Duration(i)*time.Minute))
		})
	}
	all.Wait()
	for i := range callers {
		require.NoError(t, errs[i])
		require.Equal(t, string(got[0]), string(got[i]))
	}
	require.Equal(t, longest.UTC().Format(time.RFC3339), string(w.secret().Data["expiration"]))
}

// TestErrorsOfTheServer: each error has the code that decides its retry, and names the secret.
func TestErrorsOfTheServer(t *testing.T) {
	w := newWorld(t)
	nobody, err := server.As("nobody")
	require.NoError(t, err)
	stranger := rest.AnonymousClientConfig(server.Config)
	stranger.BearerToken = "abcdef.0123456789abcdef"
	silent := rest.CopyConfig(server.Config)
	silent.Host = "https://127.0.0.1:1"
	for want, config := range map[codes.Code]*rest.Config{
		codes.PermissionDenied: nobody, codes.Unauthenticated: stranger, codes.Unavailable: silent,
	} {
		tokens, err := bootstrap.New(bootstrap.Options{Config: config})
		require.NoError(t, err)
		_, ensured := tokens.Ensure(t.Context(), w.of, soon(20))
		_, renewed := tokens.Renew(t.Context(), w.of, soon(20))
		for _, err := range []error{ensured, renewed, tokens.Delete(t.Context(), w.of)} {
			require.Equal(t, want, codes.Of(err), "%v", err)
			require.Contains(t, codes.Message(err), "secret kube-system/"+w.name()+": get: ")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = w.tokens.Ensure(ended, w.of, soon(20))
	require.Equal(t, codes.Canceled, codes.Of(err))
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	_, err = w.tokens.Ensure(late, w.of, soon(20))
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
}

// TestAnswersOfTheServer: answers that the test server does not give.
func TestAnswersOfTheServer(t *testing.T) {
	for _, c := range []struct {
		status int
		reason metav1.StatusReason
		want   codes.Code
	}{
		{http.StatusInternalServerError, metav1.StatusReasonInternalError, codes.Unavailable},
		{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, codes.Unavailable},
		{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, codes.Unavailable},
		{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, codes.InvalidArgument},
		{http.StatusConflict, metav1.StatusReasonConflict, codes.Aborted},
		{http.StatusTeapot, "Teapot", codes.Unknown},
		{http.StatusNotFound, metav1.StatusReasonNotFound, codes.PreconditionFailed},
	} {
		calls := 0
		fake := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			var body bytes.Buffer
			_, _ = body.ReadFrom(in.Body)
			calls++
			out.Header().Set("Content-Type", "application/json")
			reason, status, text := c.reason, c.status, "no"
			if in.Method == http.MethodGet {
				reason, status = metav1.StatusReasonNotFound, http.StatusNotFound
			} else {
				text = "no " + strings.Repeat("0", 16) // the secret half is repeated
			}
			out.WriteHeader(status)
			_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":` +
				itoa(status) + `,"reason":"` + string(reason) + `","message":"` + text + `"}`))
		}))
		tokens, err := bootstrap.New(bootstrap.Options{Config: &rest.Config{Host: fake.URL}, Random: zeros{}})
		require.NoError(t, err)
		_, err = tokens.Ensure(t.Context(), manager.TokenOwner{UID: "u"}, soon(20))
		require.Equal(t, c.want, codes.Of(err), "%d: %v", c.status, err)
		require.NotContains(t, err.Error(), "0000", "the secret half is told")
		require.Contains(t, err.Error(), "(secret)")
		if c.want == codes.Aborted {
			require.Equal(t, 10, calls, "it is tried five times")
		}
		fake.Close()
	}
}

// TestTokenOfAPool: the user data of a pool's group hold its token for as long as the group lives. It
// expires and may be cleaned like any other, and is the same when machines are to join again. It is
// deleted with the pool.
func TestTokenOfAPool(t *testing.T) {
	w := newWorld(t)
	w.of.Pool = true
	renewed, err := w.tokens.Renew(t.Context(), w.of, soon(20))
	require.NoError(t, err)
	require.Empty(t, string(renewed), "a renewal makes none")
	token := w.ensure(soon(20))
	require.Equal(t, "For pool "+w.of.Key.String()+", renewed while machines of it may join.", string(w.secret().Data["description"]))
	clean := func() {
		require.NoError(t, w.client.CoreV1().Secrets("kube-system").Delete(t.Context(), w.name(), metav1.DeleteOptions{}))
		eventually(t, "the token to be forgotten", func() bool { return w.admitted(token) == nil })
	}
	clean()
	asked, err := w.tokens.Renew(t.Context(), w.of, time.Time{})
	require.NoError(t, err)
	require.Equal(t, token, string(asked))
	require.Nil(t, w.secret(), "to ask makes it no more valid")
	require.Equal(t, token, w.ensure(soon(20)), "it is the same")
	eventually(t, "the token to be valid again", func() bool { return w.admitted(token) != nil })
	clean()
	renewed, err = w.tokens.Renew(t.Context(), w.of, soon(20))
	require.NoError(t, err)
	require.Equal(t, token, string(renewed), "so it is after a renewal")
	w.change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("0000000000000000") })
	require.Equal(t, token, w.ensure(soon(20)), "another half would lock out what the group makes")

	kept := "millwright-pool-token-" + bootstrap.ID(w.of)
	secrets := w.client.CoreV1().Secrets("kube-system")
	require.NoError(t, w.tokens.Delete(t.Context(), w.of))
	require.Nil(t, w.secret())
	_, err = secrets.Get(t.Context(), kept, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, w.tokens.Delete(t.Context(), w.of), "one that is gone counts as deleted")
	require.NotEqual(t, token, w.ensure(soon(20)), "the next one is new")
}

// TestKeptHalfIsNotReplaced: what keeps a pool's token is not made again if it is damaged or another's.
func TestKeptHalfIsNotReplaced(t *testing.T) {
	w := newWorld(t)
	w.of.Pool = true
	w.ensure(soon(20))
	secrets := w.client.CoreV1().Secrets("kube-system")
	damage := func(how func(*corev1.Secret)) {
		kept, err := secrets.Get(t.Context(), "millwright-pool-token-"+bootstrap.ID(w.of), metav1.GetOptions{})
		require.NoError(t, err)
		how(kept)
		_, err = secrets.Update(t.Context(), kept, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	damage(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("?") })
	_, err := w.tokens.Ensure(t.Context(), w.of, soon(20))
	require.Equal(t, codes.PreconditionFailed, codes.Of(err), "%v", err)
	require.ErrorContains(t, err, "the secret that keeps the pool's token is damaged")
	damage(func(s *corev1.Secret) { s.Annotations = nil })
	_, err = w.tokens.Ensure(t.Context(), w.of, soon(20))
	require.ErrorIs(t, err, bootstrap.ErrTaken)
	require.NoError(t, w.tokens.Delete(t.Context(), w.of))
	_, err = secrets.Get(t.Context(), "millwright-pool-token-"+bootstrap.ID(w.of), metav1.GetOptions{})
	require.NoError(t, err, "another's is left alone")
}

// TestIDs: each machine has an ID of its own, by its UID or by its key.
func TestIDs(t *testing.T) {
	a := manager.TokenOwner{Key: object.Key{Namespace: "fleet", Name: "a"}, UID: "1"}
	b := manager.TokenOwner{Key: object.Key{Namespace: "fleet", Name: "b"}, UID: "1"}
	require.Equal(t, bootstrap.ID(a), bootstrap.ID(b), "the UID decides")
	a.UID, b.UID = "", ""
	require.NotEqual(t, bootstrap.ID(a), bootstrap.ID(b))
	pool := a
	pool.Pool = true
	require.NotEqual(t, bootstrap.ID(a), bootstrap.ID(pool), "a pool and a machine of one name")
	seen := map[string]bool{}
	for i := range 2000 {
		id := bootstrap.ID(manager.TokenOwner{UID: itoa(i)})
		require.Regexp(t, `^[a-z0-9]{6}$`, id)
		seen[id] = true
	}
	require.Greater(t, len(seen), 1998)
}

// TestSecretHalvesAreRandom: bytes that would favour some characters are skipped, and a source that
// fails is an error.
func TestSecretHalvesAreRandom(t *testing.T) {
	w := newWorld(t)
	source := append([]byte{255, 252, 251, 0, 35, 36}, bytes.Repeat([]byte{10}, 16)...)
	tokens, err := bootstrap.New(bootstrap.Options{Config: server.Config, Random: bytes.NewReader(source)})
	require.NoError(t, err)
	token, err := tokens.Ensure(t.Context(), w.of, soon(20))
	require.NoError(t, err)
	require.Equal(t, bootstrap.ID(w.of)+".z0z0aaaaaaaaaaaa", string(token))
	require.NotContains(t, w.secret().Data, "auth-extra-groups")
	_, err = tokens.Ensure(t.Context(), newWorld(t).of, soon(20))
	require.ErrorContains(t, err, "EOF")

	require.NotEqual(t, newWorld(t).ensure(soon(20))[7:], newWorld(t).ensure(soon(20))[7:])
}

// TestOptionsAreChecked: a server would not accept other groups, and would then admit no bearer.
func TestOptionsAreChecked(t *testing.T) {
	_, err := bootstrap.New(bootstrap.Options{})
	require.ErrorContains(t, err, "no Config")
	for _, bad := range []string{"system:masters", "", "system:bootstrappers:", "system:bootstrappers:a,system:masters"} {
		_, err := bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{bad}})
		require.ErrorContains(t, err, "no server would accept it", bad)
	}
}
