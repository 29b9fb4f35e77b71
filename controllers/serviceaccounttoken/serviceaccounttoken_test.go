// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// running is a manager with nothing but this controller, how to end it, and all that
// it logged.
type running struct {
	*manager.Manager
	end func()
	log *record
}

// record is a log that can be read while it is written.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// start runs the controller until the test ends, as somebody who has its rights and
// no others, with the key of the real server.
func start(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) running {
	t.Helper()
	cluster := shared.Get(t)
	key, err := os.ReadFile(cluster.Endpoints().ServiceAccountKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	config := cluster.Restricted(t, Rights())
	if wrap != nil {
		config.Wrap(wrap)
	}
	log := &record{}
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, Options{Workers: 5, PrivateKey: key, RootCA: cluster.Config.CAData})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		text := log.String()
		if t.Failed() {
			t.Log(text)
		}
		// How each token, and each key in PEM, begins.
		for _, secret := range []string{"eyJ", "PRIVATE KEY"} {
			if strings.Contains(text, secret) {
				t.Errorf("the log has a secret: %s", text)
			}
		}
	})
	t.Cleanup(end)
	return running{mgr, end, log}
}

// watcher is somebody who may look at everything.
func watcher(t *testing.T) *manager.Manager {
	t.Helper()
	mgr, err := manager.New(shared.Get(t).Config, manager.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = mgr.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return mgr
}

func accounts(t *testing.T) client.Typed[*corev1.ServiceAccount] {
	return client.For[*corev1.ServiceAccount](shared.Get(t).Client)
}

func secrets(t *testing.T) client.Typed[*corev1.Secret] {
	return client.For[*corev1.Secret](shared.Get(t).Client)
}

// builder makes an account.
func builder(t *testing.T, namespace string, names ...string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "builder"}}
	for _, name := range names {
		account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: name})
	}
	account, err := accounts(t).Create(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// empty makes a Secret that waits for a token of the account builder.
func empty(t *testing.T, namespace, name string, uid types.UID) object.Key {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"kubernetes.io/service-account.name": "builder"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if uid != "" {
		secret.Annotations["kubernetes.io/service-account.uid"] = string(uid)
	}
	if _, err := secrets(t).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(secret)
}

func full(s *corev1.Secret) bool {
	return len(s.Data["token"]) > 0 && len(s.Data["ca.crt"]) > 0 && len(s.Data["namespace"]) > 0
}

// awaitGone waits until a Secret is gone.
func awaitGone(t *testing.T, key object.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	for {
		_, err := secrets(t).Get(ctx, key)
		if apierrors.IsNotFound(err) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("secret %s is still there: %v", key, err)
		}
	}
}

// whoami asks the server who has a token.
func whoami(t *testing.T, token []byte) (string, error) {
	t.Helper()
	config := rest.AnonymousClientConfig(shared.Get(t).Config)
	config.BearerToken = string(token)
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.For[*authenticationv1.SelfSubjectReview](c).Create(t.Context(), &authenticationv1.SelfSubjectReview{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

func TestTokenSecretsAreFilledAndTheServerKnowsTheTokens(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	namespace := shared.Get(t).Namespace(t)
	account := builder(t, namespace)
	key := empty(t, namespace, "token", "")
	secret := controlplanetest.Await(t, w, key, "the Secret is filled", full)
	if string(secret.Data["namespace"]) != namespace || !bytes.Equal(secret.Data["ca.crt"], shared.Get(t).Config.CAData) {
		t.Errorf("namespace %q, or the certificates, are not right", secret.Data["namespace"])
	}
	if secret.Annotations["kubernetes.io/service-account.uid"] != string(account.UID) {
		t.Errorf("the UID of the account is %q, want %q", secret.Annotations["kubernetes.io/service-account.uid"], account.UID)
	}
	who, err := whoami(t, secret.Data["token"])
	if want := "system:serviceaccount:" + namespace + ":builder"; err != nil || who != want {
		t.Errorf("the server says %q (%v), want %q", who, err, want)
	}
	// The token ends with its Secret.
	if err := secrets(t).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	for err == nil {
		if _, err = whoami(t, secret.Data["token"]); err != nil {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the server still takes the token of a Secret that is gone")
		}
	}
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("asking with the token of a Secret that is gone: %v", err)
	}
}

func TestCertificatesThatDifferAreReplacedAndATokenThatIsThereStays(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	namespace := shared.Get(t).Namespace(t)
	builder(t, namespace)
	key := empty(t, namespace, "token", "")
	first := controlplanetest.Await(t, w, key, "the Secret is filled", full)
	patch, err := client.MergePatch(map[string]any{"data": map[string]any{"ca.crt": []byte("others"), "namespace": nil, "mine": []byte("too")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secrets(t).Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, w, key, "the Secret is mended", func(s *corev1.Secret) bool {
		return full(s) && bytes.Equal(s.Data["ca.crt"], first.Data["ca.crt"]) && bytes.Equal(s.Data["token"], first.Data["token"]) && string(s.Data["mine"]) == "too"
	})
}

func TestTokensAreRemovedWithTheirAccount(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	namespace := shared.Get(t).Namespace(t)
	builder(t, namespace)
	keys := []object.Key{empty(t, namespace, "one", ""), empty(t, namespace, "two", "")}
	for _, key := range keys {
		controlplanetest.Await(t, w, key, "the Secret is filled", full)
	}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other", Annotations: map[string]string{"kubernetes.io/service-account.name": "builder"}}}
	if _, err := secrets(t).Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := accounts(t).Delete(t.Context(), object.Key{Namespace: namespace, Name: "builder"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		awaitGone(t, key)
	}
	if _, err := secrets(t).Get(t.Context(), object.KeyOf(other)); err != nil {
		t.Errorf("a Secret of another type: %v, want that it stays", err)
	}
}

func TestAnAccountMadeAnewIsAnotherOne(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	namespace := shared.Get(t).Namespace(t)
	first := builder(t, namespace)
	key := empty(t, namespace, "old", first.UID)
	controlplanetest.Await(t, w, key, "the Secret is filled", full)
	if err := accounts(t).Delete(t.Context(), object.KeyOf(first)); err != nil {
		t.Fatal(err)
	}
	second := builder(t, namespace)
	awaitGone(t, key)
	// A Secret that names the new one has its token; one that still names the old one has none.
	newer := controlplanetest.Await(t, w, empty(t, namespace, "new", second.UID), "the Secret of the new account is filled", full)
	if newer.Annotations["kubernetes.io/service-account.uid"] != string(second.UID) {
		t.Errorf("the new Secret is of %s, want %s", newer.Annotations["kubernetes.io/service-account.uid"], second.UID)
	}
	awaitGone(t, empty(t, namespace, "stale", first.UID))
}

func TestASecretWithoutAccountIsDeleted(t *testing.T) {
	start(t, nil)
	awaitGone(t, empty(t, shared.Get(t).Namespace(t), "lonely", ""))
}

func TestASecretThatGoesIsTakenOffTheSecretsOfItsAccount(t *testing.T) {
	start(t, nil)
	w := watcher(t)
	namespace := shared.Get(t).Namespace(t)
	account := builder(t, namespace, "token", "pull-secret")
	key := empty(t, namespace, "token", "")
	controlplanetest.Await(t, w, key, "the Secret is filled", full)
	if err := secrets(t).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	after := controlplanetest.Await(t, w, object.KeyOf(account), "the account names the Secret no more", func(a *corev1.ServiceAccount) bool {
		return !slices.Contains(a.Secrets, corev1.ObjectReference{Name: "token"})
	})
	if !slices.Contains(after.Secrets, corev1.ObjectReference{Name: "pull-secret"}) {
		t.Errorf("the account has %v, and nobody deleted the other Secret", after.Secrets)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The controller dies with its first write, again and again. In the end each Secret was
// filled once. And no request is for Secrets of another type.
func TestKilledInTheMiddleNoTokenIsMadeTwice(t *testing.T) {
	namespace := shared.Get(t).Namespace(t)
	builder(t, namespace)
	var keys []object.Key
	for i := range 10 {
		keys = append(keys, empty(t, namespace, fmt.Sprintf("token-%d", i), ""))
	}
	var filled, lost atomic.Int64 // lost: the process died before it read the answer
	live := func(dies bool) (running, <-chan struct{}) {
		wrote := make(chan struct{}, 1)
		var dead atomic.Bool
		return start(t, func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if dead.Load() {
					return nil, errors.New("the process is dead")
				}
				if strings.HasSuffix(r.URL.Path, "/secrets") && r.URL.Query().Get("fieldSelector") != "type=kubernetes.io/service-account-token" {
					t.Errorf("a request for all Secrets: %s", r.URL)
				}
				answer, err := next.RoundTrip(r)
				if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/"+namespace+"/secrets/") {
					return answer, err
				}
				switch {
				case err != nil:
					lost.Add(1)
				case answer.StatusCode == http.StatusOK:
					filled.Add(1)
					dead.Store(dies)
					select {
					case wrote <- struct{}{}:
					default:
					}
				}
				return answer, err
			})
		}), wrote
	}
	for range 2 { // five workers write at a time
		one, wrote := live(true)
		select {
		case <-wrote:
		case <-time.After(controlplanetest.Patience):
			t.Fatal("nothing is written")
		}
		one.end()
		if filled.Load() == int64(len(keys)) {
			break
		}
	}
	last, _ := live(false)
	w := watcher(t)
	for _, key := range keys {
		controlplanetest.Await(t, w, key, "the Secret is filled", full)
	}
	last.end() // a watch may tell of a write before its answer is here to be counted
	// Each is filled once: nothing is written over, and of what the dead process asked for
	// without reading the answer, some may have happened.
	if did, may := filled.Load(), filled.Load()+lost.Load(); did > int64(len(keys)) || may < int64(len(keys)) {
		t.Errorf("%d writes, and %d whose answer was lost, for %d Secrets", did, lost.Load(), len(keys))
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"-1 workers": {Workers: -1},
		"a private key to sign tokens with is missing": {Workers: 1},
		"neither an RSA nor an ECDSA key":              {Workers: 1, PrivateKey: []byte("open-sesame")},
	} {
		if _, err := New(mgr, o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("New = %v, want an error that says %q", err, want)
		}
	}
}

func TestOnlyWhatIsMissingIsFilledIn(t *testing.T) {
	data := func(names ...string) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{}}
		for _, name := range names {
			s.Data[name] = []byte("x")
		}
		return s
	}
	for _, test := range []struct {
		name   string
		secret *corev1.Secret
		rootCA string
		want   lack
	}{
		{"nothing is there", &corev1.Secret{}, "x", lack{true, true, true}},
		{"all is there", data("ca.crt", "namespace", "token"), "x", lack{}},
		{"other certificates", data("ca.crt", "namespace", "token"), "y", lack{certificates: true}},
		{"no certificates are known", data("namespace", "token"), "", lack{}},
		{"no token", data("ca.crt", "namespace"), "x", lack{token: true}},
		{"no namespace", data("ca.crt", "token"), "x", lack{namespace: true}},
	} {
		if got := lacking(test.secret, []byte(test.rootCA)); got != test.want {
			t.Errorf("%s: lacks %+v, want %+v", test.name, got, test.want)
		}
	}
}
