# volumes on devices elsewhere: file, name, text, replacement, methods that must reject it
[
    # the lease
    ("lease", "lease: renewed after its end", "    if end > until { next := end; }", "    if end > until || until == OVER { next := end; }", "*.Renew"),
    ("lease", "lease: an older renewal takes a newer one back", "if end > until { next := end; }", "next := end;", "*.Renew"),
    ("lease", "lease: twice as long", "{ end := sent + length; }", "{ end := sent + length; if end < LATEST - length { end := end + length; } }", "*.Renew"),
    ("lease", "lease: not renewed", "if end > until { next := end; }", "", "*.Renew"),
    ("lease", "lease: renewals stay", "if until != OVER { next := 0; }", "", "*.TakeBack"),
    ("lease", "lease: begins anew after its end", "if until != OVER { next := 0; }", "next := 0;", "*.TakeBack"),
    ("lease", "lease: its end is a lapse", "next := OVER;", "next := 0;", "*.Finish"),
    ("lease", "lease: holds at its end", "yes := now < until && until != OVER;", "yes := now <= until && until != OVER;", "*.Holds"),
    ("lease", "lease: holds after its end", "yes := now < until && until != OVER;", "yes := now < until;", "*.Holds"),
    ("lease", "lease: never holds", "yes := now < until && until != OVER;", "yes := false;", "*.Holds"),
    ("lease", "lease: a successor waits less", "if waited < length {", "if waited < length / 2 {", "*.ToWait"),
    ("lease", "lease: a successor waits for a whole one again", "wait := length - waited;", "wait := length;", "*.ToWait"),
    ("lease", "lease: a reply after the end", "End !in h && exists i", "exists i", "*.Holds"),
    ("lease", "lease: what was sent before a lapse counts", " && forall k :: i < k < |h| ==> h[k] != Lapse", "", "*.TakeBack"),
    ("lease", "lease: clocks that are not equally fast", "h[i].sent as int - own <= known as int - other", "h[i].sent as int - own <= 2 * (known as int - other)", "*.Apart"),
]
