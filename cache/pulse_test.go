// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestAnOutageIsSaidOnceForAllInformersOfAServer(t *testing.T) {
	var log bytes.Buffer
	var server pulse
	var all []*informer
	for range 3 {
		i := newInformer("pods", nil, podContent(), slog.New(slog.NewTextHandler(&log, nil)))
		i.reflect.server = &server
		all = append(all, i)
	}
	for _, i := range all {
		i.trouble(errNoConnection)
	}
	// What is wrong with one kind alone is said beside.
	all[2].trouble(errForbiddenList)
	for _, i := range all {
		i.trouble(nil)
	}
	server.beat()
	text := log.String()
	if strings.Count(text, "the connection fails") != 1 || strings.Count(text, "forbidden") == 0 || strings.Count(text, "watching again") != 2 {
		t.Errorf("logged:\n%s", text)
	}
}
