// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// leaving is a server of one object of each kind. It leaves managedFields out if a client
// asks for that, or does not know how to, or refuses the request. It is a raw server: fakeapi
// is a server of one version, and these differ in what they know.
type leaving struct {
	honours bool
	refuses int                                             // the code with which it refuses to leave managedFields out; 0: it does not
	before  func(w http.ResponseWriter, dropping bool) bool // reports whether it has answered; may be nil

	mu    sync.Mutex
	asked []string
}

func (l *leaving) start(t *testing.T) *client.Client {
	t.Helper()
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	return newClient(t, &rest.Config{Host: s.URL})
}

// was returns the requests that the server received, and forgets them.
func (l *leaving) was() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.asked, ", ")
	l.asked = nil
	return all
}

func (l *leaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	drops := []string{}
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		_, params, err := mime.ParseMediaType(clause)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotAcceptable)
			return
		}
		drops = append(drops, params["drop"])
	}
	dropping := !slices.ContainsFunc(drops, func(d string) bool { return d != "metadata.managedFields" })
	what := "whole"
	if dropping {
		what = "slim"
	} else if strings.Join(drops, "") != "" {
		what = "mixed"
	}
	verb := "list"
	if r.URL.Query().Get("watch") == "true" {
		verb = "watch"
	}
	l.mu.Lock()
	l.asked = append(l.asked, verb+" "+what)
	l.mu.Unlock()
	if l.before != nil && l.before(w, dropping) {
		return
	}
	if l.refuses != 0 && dropping {
		http.Error(w, "what is this?", l.refuses)
		return
	}
	managed := `,"managedFields":[{"manager":"me"}]`
	if l.honours && dropping {
		managed = ""
	}
	o := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"` + managed + `}}`
	w.Header().Set("Content-Type", "application/json")
	if verb == "watch" {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, o)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, o)
}

// read lists or watches and returns the one object that comes.
func read(t *testing.T, c *client.Client, verb string, r object.Resource, s client.Selection) (string, error) {
	t.Helper()
	if verb == "list" {
		var text string
		_, err := c.List(t.Context(), r, s, client.ListOptions{}, func(_ wire.Encoding, raw []byte) error {
			text += string(raw)
			return nil
		})
		return text, err
	}
	w, err := c.Watch(t.Context(), r, s, client.WatchOptions{})
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }()
	event, err := w.Next()
	if err != nil {
		return "", err
	}
	text := string(event.Object)
	if _, err := w.Next(); !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("after the one event: %w", err)
	}
	return text, nil
}

var (
	deployments = object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}
	replicaSets = object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}
)

// Each form of a list and of a watch asks for objects without managedFields where it is
// told to, and only there. A server that refuses is asked again with them, and for the
// kinds of that group and version no more without.
func TestManagedFieldsAreLeftOutWhereTheServerCan(t *testing.T) {
	for _, server := range []struct {
		name          string
		honours       bool
		refuses       int
		first, second string
		slim          bool
	}{
		{"honours it", true, 0, "slim", "slim", true},
		{"ignores it", false, 0, "slim", "slim", false},
		{"finds it not acceptable", true, http.StatusNotAcceptable, "slim, %s whole", "whole", false},
		{"finds it unsupported", true, http.StatusUnsupportedMediaType, "slim, %s whole", "whole", false},
		{"finds it bad", true, http.StatusBadRequest, "slim, %s whole", "whole", false},
	} {
		for _, form := range []client.Selection{{}, {JSONOnly: true}, {MetadataOnly: true}, {MetadataOnly: true, JSONOnly: true}} {
			for _, verb := range []string{"list", "watch"} {
				t.Run(fmt.Sprintf("%s/%s/%+v", server.name, verb, form), func(t *testing.T) {
					l := &leaving{honours: server.honours, refuses: server.refuses}
					c := l.start(t)
					check := func(r object.Resource, s client.Selection, want string, slim bool) {
						t.Helper()
						text, err := read(t, c, verb, r, s)
						if err != nil || !strings.Contains(text, `"web"`) || strings.Contains(text, "managedFields") == slim {
							t.Errorf("%s of %s brought %q, %v", verb, r, text, err)
						}
						if strings.Contains(want, "%") {
							want = fmt.Sprintf(want, verb)
						}
						if got := l.was(); got != verb+" "+want {
							t.Errorf("%s of %s: the server received %q, want %q", verb, r, got, verb+" "+want)
						}
					}
					check(deployments, form, "whole", false)
					form.WithoutManagedFields = true
					check(deployments, form, server.first, server.slim)
					check(replicaSets, form, server.second, server.slim)
					check(pods, form, server.first, server.slim) // of another group
					form.WithoutManagedFields = false
					check(pods, form, "whole", false)
				})
			}
		}
	}
}

// A refusal that has another cause is the caller's, and says nothing of managedFields.
func TestARefusalForAnotherReasonIsNotRemembered(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		// What the server answers to the first request, and to the one that is made of it.
		for _, test := range []struct{ slim, whole int }{
			{http.StatusBadRequest, http.StatusBadRequest},             // a malformed selector, say
			{http.StatusNotAcceptable, http.StatusInternalServerError}, // and nobody knows what the first was about
			{http.StatusForbidden, 0},
			{http.StatusConflict, 0},
		} {
			t.Run(fmt.Sprint(verb, test), func(t *testing.T) {
				var mended atomic.Bool
				l := &leaving{honours: true, before: func(w http.ResponseWriter, dropping bool) bool {
					code := test.whole
					if dropping {
						code = test.slim
					}
					if mended.Load() || code == 0 {
						return false
					}
					http.Error(w, "no", code)
					return true
				}}
				c := l.start(t)
				s := client.Selection{WithoutManagedFields: true}
				want, code := verb+" slim", test.slim
				if test.whole != 0 {
					want, code = want+", "+verb+" whole", test.whole
				}
				var status apierrors.APIStatus
				if _, err := read(t, c, verb, pods, s); !errors.As(err, &status) || int(status.Status().Code) != code {
					t.Errorf("the error is %v, want one of code %d", err, code)
				}
				if got := l.was(); got != want {
					t.Errorf("the server received %q, want %q", got, want)
				}
				mended.Store(true)
				text, err := read(t, c, verb, pods, s)
				if err != nil || strings.Contains(text, "managedFields") {
					t.Errorf("afterwards a %s brought %q, %v", verb, text, err)
				}
				if got, want := l.was(), verb+" slim"; got != want {
					t.Errorf("afterwards the server received %q, want %q", got, want)
				}
			})
		}
	}
}

// A server that has one form and knows no parameters of it is read without managedFields
// being left out, for metadata as for whole objects.
func TestAServerOfOneFormIsReadWithManagedFields(t *testing.T) {
	c := plainServer(t)
	for _, verb := range []string{"list", "watch"} {
		for _, s := range []client.Selection{{}, {JSONOnly: true}, {MetadataOnly: true}} {
			s.WithoutManagedFields = true
			text, err := read(t, c, verb, pods, s)
			if err != nil || !strings.Contains(text, `"uid-a"`) {
				t.Errorf("%s of %+v brought %q, %v", verb, s, text, err)
			}
		}
	}
}
