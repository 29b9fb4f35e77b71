// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Errorf(format, args...)) }

// page answers each request with a ConfigMap, or that there is none.
type page string

func (p page) RoundTrip(*http.Request) (*http.Response, error) {
	status, body := http.StatusOK, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"index.html": %q},
		"metadata": {"namespace": "a", "name": "page", "managedFields": [{"manager": "somebody"}]}}`, string(p))
	if p == "" {
		status, body = http.StatusNotFound, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "configmaps \"page\" not found"}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func serving(t *testing.T, p page) *client.Client {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://server", Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var key = object.Key{Namespace: "a", Name: "page"}

func isNew(m *corev1.ConfigMap) bool { return m.Data["index.html"] == "new" }

func TestAWaitThatIsInVainSaysWhatItWaitedForHowLongAndWhatItSawLast(t *testing.T) {
	for name, test := range map[string]struct {
		wait func(testing.TB)
		want []string
	}{
		"anything": {
			func(t testing.TB) {
				setpointtest.Eventually(t, "the page is served", func() error { return errors.New("it is 404") })
			},
			[]string{"the page is served: not so after 1m0s: it is 404"},
		},
		"an object that is otherwise": {
			func(tb testing.TB) { setpointtest.Await(tb, serving(t, "old"), key, "the page is new", isNew) },
			[]string{"the page is new: not so after 1m0s: last seen as\n", "index.html: old"},
		},
		"an object that is not there": {
			func(tb testing.TB) { setpointtest.Await(tb, serving(t, ""), key, "the page is new", isNew) },
			[]string{"the page is new: not so after 1m0s", `configmaps "page" not found`},
		},
		"an object that stays": {
			func(tb testing.TB) { setpointtest.AwaitGone[*corev1.ConfigMap](tb, serving(t, "old"), key) },
			[]string{"*v1.ConfigMap a/page is gone: not so after 1m0s: last seen as\n", "index.html: old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := fails(t, test.wait)
				for _, part := range test.want {
					if !strings.Contains(said, part) {
						t.Errorf("it says\n%s\nwant %q", said, part)
					}
				}
				if strings.Contains(said, "managedFields") {
					t.Errorf("it says\n%s\nwant it without managedFields", said)
				}
			})
		})
	}
}

func TestAWaitEndsWhenItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		setpointtest.Eventually(t, "it is looked at three times", func() error {
			if looks++; looks < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if looks != 3 || time.Since(began) >= time.Second {
			t.Errorf("it looked %d times within %s", looks, time.Since(began))
		}
		if m := setpointtest.Await(t, serving(t, "new"), key, "the page is new", isNew); m.Name != "page" {
			t.Errorf("it returns %v", m)
		}
		setpointtest.AwaitGone[*corev1.ConfigMap](t, serving(t, ""), key)
	})
}
