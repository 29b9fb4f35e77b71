// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A kind that was defined a moment ago is answered with the code of a server that is
// overloaded, until the server has loaded it. That is no trouble that somebody should see.
func TestAKindThatTheServerLoadsIsNoTroubleAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		i := newInformer("websites.example.com", nil, podContent(), slog.New(slog.NewTextHandler(&log, nil)))
		loading := apierrors.NewTooManyRequests("storage is (re)initializing", 1)
		for range 10 {
			i.trouble(loading)
			time.Sleep(time.Second)
		}
		i.trouble(nil)
		if log.Len() > 0 {
			t.Errorf("logged:\n%s", log.String())
		}

		for range 30 {
			i.trouble(loading)
			time.Sleep(time.Second)
		}
		i.trouble(nil)
		text := log.String()
		if strings.Count(text, "cannot watch") != 1 || !strings.Contains(text, `reason="the server has not loaded this kind yet"`) || strings.Count(text, "watching again") != 1 {
			t.Errorf("logged of one that takes half a minute:\n%s", text)
		}
	})
}

func TestTheEndOfATroubleIsLoggedAsLoudlyAsTheTrouble(t *testing.T) {
	for _, err := range []error{errNoConnection, errForbiddenList, apierrors.NewTooManyRequests("later", 1)} {
		var log bytes.Buffer
		i := newInformer("pods", nil, podContent(), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
		i.reflect.server = &pulse{}
		i.trouble(err)
		i.trouble(nil)
		if text := log.String(); !strings.Contains(text, "cannot watch") || !strings.Contains(text, "watching again") {
			t.Errorf("logged as warnings:\n%s", text)
		}
	}
}
