// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// transport answers requests within the process.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// within returns a client whose requests f answers.
func within(t testing.TB, f transport) *client.Client {
	t.Helper()
	c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is one in JSON, with headers in pairs.
func answer(code int, body any, headers ...string) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	r := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text))}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	return r
}

func failure(code int, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "no"}
}

func storedPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", ResourceVersion: "7", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	}
}

// writings are all ways to write, by name.
var writings = map[string]func(context.Context, client.Typed[*corev1.Pod]) error{
	"create under a generated name": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		_, err := p.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "a-"}})
		return err
	},
	"update": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		_, err := p.Update(ctx, storedPod())
		return err
	},
	"update of the status": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		_, err := p.UpdateStatus(ctx, storedPod())
		return err
	},
	"patch": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		_, err := p.Patch(ctx, object.KeyOf(storedPod()), client.Patch{Type: "application/merge-patch+json", Data: []byte(`{}`)})
		return err
	},
	"apply": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		_, err := p.Apply(ctx, object.KeyOf(storedPod()), "test", storedPod())
		return err
	},
	"delete": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		return p.Delete(ctx, object.KeyOf(storedPod()))
	},
	"deletecollection": func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
		return p.DeleteCollection(ctx, client.Selection{Namespace: "ns"})
	},
}

// What an answer leaves open is looked up by the code that records the write; a second try
// would hide it behind an answer of its own, and may make a second object.
func TestAWriteThatMayHaveBeenCarriedOutIsSentOnce(t *testing.T) {
	for name, write := range writings {
		for _, code := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
			t.Run(fmt.Sprint(name, ", ", code), func(t *testing.T) {
				sent := 0
				c := within(t, func(*http.Request) (*http.Response, error) {
					if sent++; sent == 1 {
						return answer(code, failure(code, metav1.StatusReasonTimeout), "Retry-After", "0"), nil
					}
					return answer(http.StatusOK, storedPod()), nil
				})
				var r recorder
				err := write(client.WithRecorder(t.Context(), &r), client.For[*corev1.Pod](c))
				if w := r.one(t); sent != 1 || !w.Unknown || !client.Unanswered(err) {
					t.Errorf("sent %d times; recorded %+v; %v", sent, w, err)
				}
			})
		}
	}
}

// A 200 is no proof of what was done, if it comes from somebody else than the API server.
func TestAWriteWhoseAnswerCannotBeReadIsOpen(t *testing.T) {
	for name, write := range writings {
		t.Run(name, func(t *testing.T) {
			c := within(t, func(*http.Request) (*http.Response, error) {
				return answer(http.StatusOK, "Welcome", "Content-Type", "text/html"), nil
			})
			var r recorder
			err := write(client.WithRecorder(t.Context(), &r), client.For[*corev1.Pod](c))
			if w := r.one(t); !w.Unknown || !client.Unanswered(err) {
				t.Errorf("recorded %+v; %v", w, err)
			}
		})
	}
}

func TestAWriteThatWasTurnedAwayIsSentAgain(t *testing.T) {
	for name, write := range writings {
		t.Run(name, func(t *testing.T) {
			sent := 0
			c := within(t, func(*http.Request) (*http.Response, error) {
				if sent++; sent < 3 {
					return answer(http.StatusTooManyRequests, failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), "Retry-After", "0"), nil
				}
				return answer(http.StatusOK, storedPod()), nil
			})
			var r recorder
			err := write(client.WithRecorder(t.Context(), &r), client.For[*corev1.Pod](c))
			if w := r.one(t); sent != 3 || err != nil || w.Unknown != (name == "deletecollection") {
				t.Errorf("sent %d times; recorded %+v; %v", sent, w, err)
			}
		})
	}
}

// A header may come from a proxy in between.
func TestRetryAfterIsBelievedForAMinuteAndSpread(t *testing.T) {
	for asked, bounds := range map[string][2]time.Duration{
		"10":         {10 * time.Second, 15 * time.Second},
		"86400":      {time.Minute, 90 * time.Second},
		"2147483647": {time.Minute, 90 * time.Second},
	} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				began, waits := time.Now(), map[time.Duration]bool{}
				var tasks sync.WaitGroup
				for range 10 {
					sent := 0
					c := within(t, func(*http.Request) (*http.Response, error) {
						if sent++; sent == 1 {
							return answer(http.StatusTooManyRequests, failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), "Retry-After", asked), nil
						}
						mu.Lock()
						defer mu.Unlock()
						waits[time.Since(began)] = true
						return answer(http.StatusOK, storedPod()), nil
					})
					tasks.Go(func() {
						if _, err := client.For[*corev1.Pod](c).Get(t.Context(), object.KeyOf(storedPod())); err != nil {
							t.Error(err)
						}
					})
				}
				tasks.Wait()
				for wait := range waits {
					if wait < bounds[0] || wait > bounds[1] {
						t.Errorf("waited %s, want %s to %s", wait, bounds[0], bounds[1])
					}
				}
				if len(waits) < 2 {
					t.Errorf("all came back after %v", waits)
				}
			})
		})
	}
}

// Callers wait by what an error says, too.
func TestAnErrorSuggestsNoLongerDelayThanAMinute(t *testing.T) {
	status := failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	for name, inBody := range map[string]int32{"in the header": 0, "in the body": 1 << 30, "below zero in the body": -5} {
		t.Run(name, func(t *testing.T) {
			if inBody != 0 {
				status.Details = &metav1.StatusDetails{RetryAfterSeconds: inBody}
			}
			c := within(t, func(*http.Request) (*http.Response, error) {
				return answer(http.StatusTooManyRequests, status, "Retry-After", "1000000"), nil
			})
			_, err := c.Watch(t.Context(), pods, client.Selection{}, client.WatchOptions{})
			if seconds, _ := apierrors.SuggestsClientDelay(err); seconds < 0 || seconds > 60 {
				t.Errorf("%d s: %v", seconds, err)
			}
		})
	}
}

// What a dry run would have done is nothing to wait for, and nothing to look up.
func TestDryRunsAreNotRecordedAndReachTheServerAsSuch(t *testing.T) {
	for name, write := range writings {
		for outcome, reply := range map[string]func() (*http.Response, error){
			"answered":           func() (*http.Response, error) { return answer(http.StatusOK, storedPod()), nil },
			"the answer is lost": func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
			"a Status as answer": func() (*http.Response, error) {
				return answer(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}}), nil
			},
			"a server in trouble": func() (*http.Response, error) {
				return answer(500, failure(500, metav1.StatusReasonInternalError)), nil
			},
		} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				c := within(t, func(r *http.Request) (*http.Response, error) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return nil, err
					}
					inBody := strings.Contains(string(body), `"dryRun":["All"]`)
					if inQuery := r.URL.Query().Get("dryRun") == "All"; inBody != (r.Method == http.MethodDelete) || inQuery == inBody {
						t.Errorf("%s %s: %s", r.Method, r.URL, body)
					}
					return reply()
				})
				var r recorder
				_ = write(client.WithRecorder(t.Context(), &r), client.For[*corev1.Pod](c).With(client.DryRun()))
				if len(r) != 0 {
					t.Errorf("recorded: %+v", r)
				}
			})
		}
	}
}
