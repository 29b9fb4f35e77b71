// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
)

// problem is why an informer is not current.
type problem struct {
	err   error
	since time.Time
	class string
}

// sayAgain is when a reason that comes and goes is logged again. A server that
// takes watches and ends them at once would fill a log otherwise.
const sayAgain = 5 * time.Minute

// said is what was logged last of an informer's trouble. It is used by the reflector's
// goroutine, and under the lock of its proof by that one's timer.
type said struct {
	class string
	at    time.Time
	open  bool // the trouble that was logged has not been called off
}

// trouble implements sink: it records the reason and logs it once, not at each retry. The end of
// the trouble is logged at the same level, so that a log that shows one shows the other.
func (i *informer) trouble(err error) {
	if err != nil && i.onTrouble != nil {
		defer i.onTrouble(err)
	}
	before := i.problem.Load()
	if err == nil {
		if before == nil {
			return
		}
		i.problem.Store(nil)
		if i.said.open {
			i.said.open = false
			i.log.Warn("watching again", "kind", i.name, "after", time.Since(before.since).Round(time.Millisecond).String())
		}
		return
	}
	now := &problem{err: err, since: time.Now(), class: class(err)}
	if before != nil {
		now.since = before.since
	}
	i.problem.Store(now)
	switch {
	case now.class == preparing:
		if i.said.open || time.Since(now.since) < preparingMost {
			return
		}
	case before != nil && alike(before.class, now.class):
		return
	}
	if alike(i.said.class, now.class) && time.Since(i.said.at) < sayAgain {
		return
	}
	if isConnection(now.class) && !i.reflect.server.miss() {
		return // another informer of this server has said so
	}
	i.said = said{class: now.class, at: time.Now(), open: true}
	i.log.Warn("cannot watch; trying again until it works", "kind", i.name, "reason", now.class, "error", err)
}

// alike reports whether two reasons are one for a reader of the log: a server that
// goes breaks connections first and takes none after.
func alike(a, b string) bool { return a == b || (isConnection(a) && isConnection(b)) }

func isConnection(class string) bool { return class == unreachable || class == noConnection }

// The classes of problems. One line is logged for each change of class.
func class(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsUnauthorized(err):
		return "unauthorized"
	case apierrors.IsNotFound(err):
		return "the server does not serve this kind"
	case apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), storagePrepared):
		return preparing
	case apierrors.IsTooManyRequests(err):
		return "the server is overloaded"
	case client.Unreachable(err):
		return unreachable
	case errors.Is(err, errShortWatch):
		return "watches end at once"
	case isUndecodable(err):
		return "an object cannot be used"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprintf("the server answers %d", status.Status().Code)
	}
	return noConnection
}

const (
	unreachable  = "the server cannot be reached"
	noConnection = "the connection fails"
	preparing    = "the server has not loaded this kind yet"
)

const (
	// storagePrepared is in the answer of a server that has not loaded a kind yet: one that was
	// defined a moment ago, or any at its start. It has the code of a server that is overloaded.
	// Source: k8s.io/apiserver/pkg/storage/cacher, ready.
	storagePrepared = "storage is (re)initializing"
	// preparingMost is how long that is no trouble to log. It takes a second or two.
	preparingMost = 15 * time.Second
)
