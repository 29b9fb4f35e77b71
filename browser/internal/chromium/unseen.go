// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package chromium

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// unseen is what the pages of a tab did that a reader does not see.
type unseen struct {
	mu       sync.Mutex
	requests []string
	problems []string
}

// observe records an event of the tab.
func (u *unseen) observe(event any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u.requests = append(u.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		u.problems = append(u.problems, exceptionText(e.ExceptionDetails))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			u.problems = append(u.problems, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *audits.EventIssueAdded:
		if violation := e.Issue.Details.ContentSecurityPolicyIssueDetails; violation != nil {
			u.problems = append(u.problems, fmt.Sprintf("content security policy: %s blocks %s", violation.ViolatedDirective, violation.BlockedURL))
		}
	}
}

func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return "exception: " + e.Exception.Description
	}
	return "exception: " + e.Text
}

// Requests returns the addresses that the tab has requested.
func (t *Tab) Requests() []string {
	t.unseen.mu.Lock()
	defer t.unseen.mu.Unlock()
	return slices.Clone(t.unseen.requests)
}

// Foreign returns the requests that went to other servers than the one whose addresses begin so.
func (t *Tab) Foreign(server string) []string {
	return slices.DeleteFunc(t.Requests(), func(address string) bool {
		return strings.HasPrefix(address, server) || strings.HasPrefix(address, "data:") || strings.HasPrefix(address, "about:")
	})
}

// Problems returns the exceptions of scripts, what a content security policy blocked, and the other errors that the
// console of the browser shows. Answers of servers with an error are not among them.
func (t *Tab) Problems() []string {
	t.unseen.mu.Lock()
	defer t.unseen.mu.Unlock()
	return slices.Clone(t.unseen.problems)
}
