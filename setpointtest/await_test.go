// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Errorf(format, args...)) }

// serving returns a client of a server in memory with a ConfigMap of that page, or with none
// if the page is "".
func serving(t *testing.T, page string) *client.Client {
	t.Helper()
	api := fakeapi.New()
	maps := api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	if page != "" {
		managed := []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
		if err := maps.Add(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ManagedFields: managed}, Data: map[string]string{"index.html": page},
		}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(api.Config())
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
			[]string{"the page is served: not so after 2m0s: it is 404"},
		},
		"an object that is otherwise": {
			func(tb testing.TB) { setpointtest.Await(tb, serving(t, "old"), key, "the page is new", isNew) },
			[]string{"the page is new: not so after 2m0s: last seen as\n", "index.html: old"},
		},
		"an object that is not there": {
			func(tb testing.TB) { setpointtest.Await(tb, serving(t, ""), key, "the page is new", isNew) },
			[]string{"the page is new: not so after 2m0s", `configmaps "page" not found`},
		},
		"an object that stays": {
			func(tb testing.TB) { setpointtest.AwaitGone[*corev1.ConfigMap](tb, serving(t, "old"), key) },
			[]string{"*v1.ConfigMap a/page is gone: not so after 2m0s: last seen as\n", "index.html: old"},
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
