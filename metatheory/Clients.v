(** THE THEOREM: what clients of the server see, many at once and through any number of crashes, is a trace of the
    specification, if
    - T1 and T2 hold of the running code, and the runner does what it should ([Contracts], [Recovers] in Execution.v), and
    - each procedure, run alone as a sequential program, does what the specification allows ([Sequential] below). *)
From Tansy Require Export Execution.

Section theorem.
  Context {Obj Vol Op Res V : Type} (keys : gset key) (cell : Vol → key → Obj).
  Context (body : Op → program Obj Res) (own : program Obj Res) (ok : Res → bool).
  Context (stable : Op → bool) (flush : Op → Res → bool).
  Context (free : Vol → key → Prop) (fresh : Vol → Prop).
  Context (init : V → Prop) (allowed : V → Op → Res → V → Prop) (shed : V → V → Prop).
  (** [abs data v]: the objects are a valid volume, and to clients it is v (Sound and AbsOf in base.dfy). *)
  Context (abs : gmap key Obj → V → Prop).
  Notation life := (life (Obj:=Obj) (Vol:=Vol) (Op:=Op) (Res:=Res)).
  Notation Contracts := (Contracts keys cell body own ok stable flush).
  Notation Recovers := (Recovers keys cell free).
  Notation trace := (trace init allowed stable flush shed).
  Notation status_of_call := (status Op Res).

  (** *** The file system alone: theorems 13, 16, and 20 of verified/THEOREMS.md *)
  Record Sequential : Prop := {
    (* a procedure that returns NFS3_OK did what the specification says, and the volume is valid again.
       fs/spec/nfs3.s.dfy (head): "status == NFS3_OK ==> XOk(...), and the volume is sound again" *)
    seq_ok : ∀ o data v r data', abs data v → run (body o) data r data' → ok r = true →
      ∃ v', allowed v o r v' ∧ abs data' v';
    (* with another status it may say so; the volume is as before, for the transaction is aborted.
       fs/spec/nfs3.s.dfy (head):
         "status != NFS3_OK ==> XErr(...) or Outside(status, ...), and the volume is as before;" *)
    seq_err : ∀ o data v r data', abs data v → run (body o) data r data' → ok r = false → allowed v o r v;
    (* What the server does of itself changes nothing else than it may.
       fs/procedures/base.dfy Shrink: "ensures Sound(d) && N.Freed(old(AbsOf(d)), AbsOf(d))" *)
    seq_own : ∀ data v r data', abs data v → run own data r data' → ok r = true → ∃ v', shed v v' ∧ abs data' v';
    (* a volume with the same objects, but for free blocks, is as valid and means the same.
       fs/procedures/remount.dfy AfterCrash:
         "requires Holds(g, o, v) && ButFree(g, v.used, o, o2) && BlocksMatch(g, o2, bs)"
       fs/procedures/remount.dfy AfterCrash:
         "ensures Holds(g, o2, v.(blocks := bs)) && Meaning(g, v.(blocks := bs)) == Meaning(g, v)" *)
    seq_but_free : ∀ st w data data' v, Is keys cell data st → Is keys cell data' w →
      (∀ k, k ∈ keys → ¬ free st k → cell w k = cell st k) → abs data v → abs data' v;
    (* fs/procedures/remount.dfy Unique: "requires Holds(g, o, v) && Holds(g, o, w)"
       fs/procedures/remount.dfy Unique: "ensures Meaning(g, v) == Meaning(g, w)" *)
    seq_unique : ∀ data v v', abs data v → abs data v' → v = v';
    (* mkfs makes a valid volume *)
    seq_mkfs : ∀ w, fresh w → ∃ v, init v ∧ abs (DataOf keys cell w) v }.

  Section simulation.
  Context (HS : Sequential).
  Definition means (st : Vol) (v : V) : Prop := abs (DataOf keys cell st) v.

  (** A transaction at its place is its procedure there, alone: one that commits, *)
  Lemma commit_allowed o l r st st1 v : means st v → does (body o) l r → wrote ok l r = true →
    Leads keys cell l st st1 → ∃ v', allowed v o r v' ∧ means st1 v'.
  Proof.
    intros Hm Hd Hw HL. unfold wrote in Hw. apply andb_true_iff in Hw as [Hok _].
    destruct (AtCommit _ _ _ _ _ _ (DataIs keys cell st) HL) as [HK HI].
    destruct (seq_ok HS _ _ _ _ _ Hm (log_is_run _ _ _ _ Hd HK) Hok) as (v'&Ha&Habs).
    exists v'. split; [done|]. eapply (seq_but_free HS st1 st1); [exact HI|apply DataIs|done|done].
  Qed.
  Lemma own_sheds l r st st1 v : means st v → does own l r → ok r = true → Leads keys cell l st st1 →
    ∃ v', shed v v' ∧ means st1 v'.
  Proof.
    intros Hm Hd Hok HL. destruct (AtCommit _ _ _ _ _ _ (DataIs keys cell st) HL) as [HK HI].
    destruct (seq_own HS _ _ _ _ Hm (log_is_run _ _ _ _ Hd HK) Hok) as (v'&Ha&Habs).
    exists v'. split; [done|]. eapply (seq_but_free HS st1 st1); [exact HI|apply DataIs|done|done].
  Qed.
  (** and one that wrote nothing or was refused. *)
  Lemma look_allowed o l r st v : means st v → does (body o) l r → wrote ok l r = false →
    Finds keys cell l st → allowed v o r v.
  Proof.
    intros Hm Hd Hw HF.
    pose proof (log_is_run _ _ _ _ Hd (Contract _ _ _ _ _ (DataIs keys cell st) HF)) as Hrun.
    destruct (ok r) eqn:Hok; [|by eapply (seq_err HS)].
    unfold wrote in Hw. rewrite Hok /= in Hw. apply bool_decide_eq_false in Hw.
    assert (Writes l = ∅) as Hnone by (destruct (decide (Writes l = ∅)); [done|by exfalso; apply Hw]).
    destruct (seq_ok HS _ _ _ _ _ Hm Hrun Hok) as (v'&Ha&Habs).
    assert (Written l (DataOf keys cell st) = DataOf keys cell st) as Hsame.
    { apply map_eq. intros k. by rewrite Written_so Hnone lookup_empty. }
    rewrite Hsame in Habs. by rewrite (seq_unique HS _ _ _ Hm Habs) {1}(seq_unique HS _ _ _ Habs Hm).
  Qed.

  Section life.
  Context (L : life) (HC : Contracts L).

  Lemma some_state t : t ≤ ending L → 0 < length (vs L t).
  Proof. intros Ht. pose proof (waits_exist _ _ _ (c_waits _ _ _ _ _ _ _ _ HC) t Ht). lia. Qed.
  (** Only a commit makes a new state, *)
  Definition commits (a : act Op Res Obj) : Prop := match a with Points _ _ | Frees _ _ _ => True | _ => False end.
  Lemma still t a : at_ L t a → ¬ commits a → vs L (S t) = vs L t.
  Proof.
    intros Ha Hno. assert (t < ending L) as Ht by (by eapply lookup_lt_Some).
    destruct (c_mono _ _ _ _ _ _ _ _ HC t Ht) as ([k Hk]&_&_). destruct k as [|st k]; [by rewrite Hk app_nil_r|].
    destruct (c_whole _ _ _ _ _ _ _ _ HC t) as [HS0 _]; [lia|].
    destruct (c_whole _ _ _ _ _ _ _ _ HC (S t)) as [_ HC1]; [lia|].
    pose proof (some_state t).
    destruct (commits_only _ (c_commits _ _ _ _ _ _ _ _ HC) t (length (vs L t))) as [[i Hi]|(l&r&Hi)].
    - done.
    - destruct (logs L t !! length (vs L t)) as [l|] eqn:Hl; [|done].
      destruct (HS0 _ _ Hl) as (_&?&?&_&Hv&_). apply lookup_lt_Some in Hv. lia.
    - apply HC1. rewrite Hk app_length /=. lia.
    - unfold at_ in *. rewrite Ha in Hi. injection Hi as ->. by destruct Hno.
    - unfold at_ in *. rewrite Ha in Hi. injection Hi as ->. by destruct Hno.
  Qed.
  (** and that is where the log of its transaction leads. *)
  Definition leads t n l : Prop :=
    ∃ st st1, n = length (vs L t) ∧ last (vs L t) = Some st ∧ vs L (S t) = vs L t ++ [st1] ∧ Leads keys cell l st st1.
  Lemma next_leads t n l : t < ending L →
    n = length (vs L t) ∧ length (vs L (S t)) = S n ∧ logs L (S t) !! n = Some l → leads t n l.
  Proof.
    intros Ht (->&Hlen&Hlog).
    destruct (c_mono _ _ _ _ _ _ _ _ HC t Ht) as ([k Hk]&_&_).
    destruct (c_whole _ _ _ _ _ _ _ _ HC (S t)) as [HS1 _]; [lia|].
    destruct (HS1 _ _ Hlog) as (Hpos&st&st1&H0&H1&HL).
    rewrite Hk app_length in Hlen. destruct k as [|st2 [|]]; simpl in Hlen; try lia.
    rewrite Hk in H0, H1. rewrite lookup_app_l in H0; [|lia]. rewrite lookup_app_r in H1; [|done].
    rewrite Nat.sub_diag in H1. simpl in H1. injection H1 as ->.
    exists st, st1. split_and!; [done| |done|done]. by rewrite last_lookup -Nat.sub_1_r.
  Qed.
  Lemma commit_leads t i n o l r p : at_ L t (Points i n) → phases L t i = Closed o l r p → leads t n l.
  Proof.
    intros Ha Hp. apply next_leads; [by eapply lookup_lt_Some|].
    by eapply (commits_next _ (c_commits _ _ _ _ _ _ _ _ HC)).
  Qed.
  Lemma own_leads t l r n : at_ L t (Frees l r n) → leads t n l.
  Proof.
    intros Ha. apply next_leads; [by eapply lookup_lt_Some|].
    by eapply (commits_own _ (c_commits _ _ _ _ _ _ _ _ HC)).
  Qed.
  (** What is known of a call whose transaction has ended. *)
  Lemma did t i o l r p : t ≤ ending L → phases L t i = Closed o l r p → does (body o) l r.
  Proof.
    revert o l r p. induction t as [|t IH]; intros o l r p Ht Hp.
    { by rewrite (runner_begins _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC)) in Hp. }
    destruct (lookup_lt_is_Some_2 (acts L) t) as [a Ha]; [unfold ending in Ht; lia|].
    destruct (decide (of_call a = Some i)) as [Hi|Hi].
    - pose proof (runner_goes _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC) t a i Ha Hi) as Hg.
      rewrite Hp in Hg. inversion Hg; subst; done.
    - rewrite (runner_others _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC) t a i Ha Hi) in Hp. apply (IH o l r p); [lia|done].
  Qed.

  Lemma goes_comes p ph i o ph' : goes_on body ok p ph (Comes i o) ph' → ph = Away ∧ ph' = Came o.
  Proof. by inversion 1. Qed.
  Lemma goes_closes p ph i l r ph' : goes_on body ok p ph (Closes i l r) ph' →
    ∃ o, ph = Came o ∧ ph' = Closed o l r p ∧ does (body o) l r.
  Proof. inversion 1; subst; eauto. Qed.
  Lemma goes_again_from p ph i ph' : goes_on body ok p ph (Again i) ph' →
    ∃ o, ph' = Came o ∧ (ph = Came o ∨ ∃ l r q, ph = Closed o l r q).
  Proof. inversion 1; subst; eauto 8. Qed.
  Lemma goes_points p ph i n ph' : goes_on body ok p ph (Points i n) ph' →
    ∃ o l r q, ph = Closed o l r q ∧ ph' = Pointed o l r q n ∧ wrote ok l r = true.
  Proof. inversion 1; subst; eauto 8. Qed.
  Lemma goes_answers p ph i r need ph' : goes_on body ok p ph (Answers i r need) ph' → ph' = Over ∧
    ((∃ o l q, ph = Closed o l r q ∧ wrote ok l r = false) ∨ ∃ o l q n, ph = Pointed o l r q n).
  Proof. inversion 1; subst; split; eauto 8. Qed.
  Lemma goes_fails p ph i ph' : goes_on body ok p ph (Fails i) ph' → ph ≠ Away ∧ ph ≠ Over ∧ ph' = Over.
  Proof. by inversion 1. Qed.

  (** What comes next of a call. Whether an attempt that wrote nothing is the last one, only this says (a prophecy, in
      other proofs): then its call takes effect as it closes. *)
  Definition next_of (t i : nat) : option (act Op Res Obj) :=
    head (filter (λ a, of_call a = Some i) (drop t (acts L))).
  Lemma next_here t a i : at_ L t a → of_call a = Some i → next_of t i = Some a.
  Proof. intros Ha Hi. unfold next_of. by rewrite (drop_S _ _ _ Ha) filter_cons_True. Qed.
  Lemma next_later t a i : at_ L t a → of_call a ≠ Some i → next_of (S t) i = next_of t i.
  Proof. intros Ha Hi. unfold next_of. by rewrite (drop_S _ _ _ Ha) filter_cons_False. Qed.
  Definition goes_again (a : option (act Op Res Obj)) : bool := match a with Some (Again _) => true | _ => false end.

  (** Where a call is, in the specification's words. *)
  Definition status_of (next : option (act Op Res Obj)) (ph : phase (Obj:=Obj) (Op:=Op) (Res:=Res)) : status_of_call :=
    match ph with
    | Away | Over => Idle
    | Came o => Waiting o
    | Closed o l r p => if wrote ok l r || goes_again next then Waiting o else Done r (if flush o r then p else 0)
    | Pointed o l r p n => Done r (if stable o then n else 0)
    end.
  Definition status_at (t i : nat) : status_of_call := status_of (next_of t i) (phases L t i).
  Definition matches (t : nat) (m : machine) : Prop :=
    Forall2 means (vs L t) (states m) ∧ kept m = lb L t ∧ ∀ i, calls m i = status_at t i.
  Lemma status_others t a i : at_ L t a → of_call a ≠ Some i → status_at (S t) i = status_at t i.
  Proof.
    intros Ha Hi. unfold status_at. rewrite (next_later _ _ _ Ha Hi).
    by rewrite (runner_others _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC) t a i Ha Hi).
  Qed.

  Lemma last_means Vs sts st : Forall2 means sts Vs → last sts = Some st → ∃ v, last Vs = Some v ∧ means st v.
  Proof.
    intros HF Hl. rewrite last_lookup in Hl. destruct (Forall2_lookup_l _ _ _ _ _ HF Hl) as (v&Hv&?).
    exists v. by rewrite last_lookup -(Forall2_length _ _ _ HF).
  Qed.
  Lemma seen_S t a : at_ L t a → seen L (S t) = seen L t ++ seen_of a.
  Proof. intros Ha. unfold seen. rewrite (take_S_r _ _ _ Ha) bind_app /=. by rewrite app_nil_r. Qed.

  (** One act of the server is at most one step of the specification, and what became durable meanwhile. *)
  Lemma one_act h t m a : at_ L t a → matches t m → trace h m → ∃ m', matches (S t) m' ∧ trace (h ++ seen_of a) m'.
  Proof.
    intros Ha [HF [Hk Hc]] Htr. destruct m as [Vs k cs]; simpl in *. subst k.
    assert (t < ending L) as Ht by (by eapply lookup_lt_Some).
    (* it is enough to find where the machine is before it keeps more *)
    assert (∀ Vs' cs', Forall2 means (vs L (S t)) Vs' → (∀ i, cs' i = status_at (S t) i) →
      trace (h ++ seen_of a) (Machine Vs' (lb L t) cs') → ∃ m', matches (S t) m' ∧ trace (h ++ seen_of a) m') as Hkeep.
    { intros Vs' cs' HF' Hc' Htr'. exists (Machine Vs' (lb L (S t)) cs'). split; [by split_and!|].
      eapply goes_silently; [exact Htr'|]. apply keeps. rewrite -(Forall2_length _ _ _ HF'). split.
      - by apply (c_mono _ _ _ _ _ _ _ _ HC t Ht).
      - apply (waits_exist _ _ _ (c_waits _ _ _ _ _ _ _ _ HC) (S t)). unfold ending in *. lia. }
    assert (∀ i s, of_call a = Some i → s = status_at (S t) i →
      ∀ j, set cs i s j = status_at (S t) j) as Hset.
    { intros i s Hi -> j. destruct (decide (j = i)) as [->|Hj]; [by rewrite set_eq|].
      rewrite set_ne // Hc. rewrite (status_others t a j Ha); [done|congruence]. }
    assert (∀ i, of_call a = Some i → cs i = status_at (S t) i → ∀ j, cs j = status_at (S t) j) as Hsame.
    { intros i Hi E j. destruct (decide (j = i)) as [->|Hj]; [done|].
      rewrite Hc. rewrite (status_others t a j Ha); [done|congruence]. }
    assert (∀ i, of_call a = Some i →
      goes_on body ok (length (vs L t) - 1) (phases L t i) a (phases L (S t) i)) as Hgo
      by (intros i Hi; by apply (runner_goes _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC))).
    assert (∀ i, of_call a = Some i → cs i = status_of (Some a) (phases L t i)) as Hi.
    { intros i Hi. rewrite (Hc i). unfold status_at. by rewrite (next_here _ _ _ Ha Hi). }
    destruct a as [i o|i l r|i|l r n|i n|i r need|i|]; simpl in *;
      try specialize (Hgo i eq_refl); try specialize (Hi i eq_refl).
    - (* it comes *)
      apply goes_comes in Hgo as [E0 E1]. rewrite E0 in Hi.
      eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]|by apply (Hset i _ eq_refl eq_refl)|].
      eapply goes; [exact Htr|]. unfold status_at. rewrite E1. by apply comes.
    - (* Finish or Abort is called *)
      apply goes_closes in Hgo as (o&E0&E1&Hd). rewrite E0 in Hi. rewrite app_nil_r in Hkeep |- *.
      destruct (wrote ok l r || goes_again (next_of (S t) i)) eqn:Hw.
      + eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]| |exact Htr].
        apply (Hsame i); [done|]. by rewrite Hi /status_at E1 /= Hw.
      + apply orb_false_iff in Hw as [Hw Hagain].
        destruct (c_current _ _ _ _ _ _ _ _ HC _ _ _ _ Ha) as (st&Hst&HFi).
        destruct (last_means _ _ _ HF Hst) as (v&Hv&Hm).
        eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]|by apply (Hset i _ eq_refl eq_refl)|].
        eapply goes_silently; [exact Htr|]. rewrite /status_at E1 /= Hw Hagain (Forall2_length _ _ _ HF).
        eapply looks; [done|exact Hv|]. by eapply look_allowed.
    - (* another attempt follows *)
      apply goes_again_from in Hgo as (o&E1&E0). rewrite app_nil_r in Hkeep |- *.
      eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]| |exact Htr].
      apply (Hsame i); [done|]. rewrite Hi /status_at E1.
      destruct E0 as [->|(l&r&q&->)]; simpl; [done|]. by rewrite orb_true_r.
    - (* the server frees something *)
      destruct (runner_own _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC) _ _ _ _ Ha) as [Hd Hok].
      rewrite app_nil_r in Hkeep |- *.
      destruct (own_leads _ _ _ _ Ha) as (st&st1&->&Hst&Hvs&HL).
      destruct (last_means _ _ _ HF Hst) as (v&Hv&Hm).
      destruct (own_sheds l r st st1 v Hm Hd Hok HL) as (v'&Hs&Hm').
      apply (Hkeep (Vs ++ [v']) cs).
      + rewrite Hvs. apply Forall2_app; [exact HF|]. by constructor.
      + intros j. rewrite Hc. by rewrite (status_others t _ j Ha).
      + eapply goes_silently; [exact Htr|]. by eapply sheds.
    - (* the commit *)
      apply goes_points in Hgo as (o&l&r&q&E0&E1&Hw). rewrite E0 /= Hw /= in Hi. rewrite app_nil_r in Hkeep |- *.
      destruct (commit_leads _ _ _ _ _ _ _ Ha E0) as (st&st1&->&Hst&Hvs&HL).
      destruct (last_means _ _ _ HF Hst) as (v&Hv&Hm).
      destruct (commit_allowed o l r st st1 v Hm) as (v'&Hal&Hm'); [eapply did; [|exact E0]; lia|done|done|].
      eapply Hkeep; [|by apply (Hset i _ eq_refl eq_refl)|].
      + rewrite Hvs. apply Forall2_app; [exact HF|]. by constructor.
      + eapply goes_silently; [exact Htr|]. rewrite /status_at E1 /= (Forall2_length _ _ _ HF). by eapply changes.
    - (* the reply leaves *)
      pose proof (waits_need _ _ _ (c_waits _ _ _ _ _ _ _ _ HC) _ _ _ _ Ha) as Hneed.
      apply goes_answers in Hgo as [E1 Hgo].
      assert (∃ b, cs i = Done r b ∧ b ≤ lb L t) as (b&Hb&Hle).
      { destruct Hgo as [(o&l&q&E0&Hw)|(o&l&q&n&E0)]; rewrite E0 in Hi; simpl in Hi.
        - rewrite Hw in Hi. exists (if flush o r then q else 0). split; [done|].
          destruct (flush o r) eqn:Hf; [|lia]. by eapply (waits_flush _ _ _ (c_waits _ _ _ _ _ _ _ _ HC)).
        - exists (if stable o then n else 0). split; [done|].
          destruct (stable o) eqn:Hs; [|lia]. trans need; [|done].
          by eapply (waits_stable _ _ _ (c_waits _ _ _ _ _ _ _ _ HC)). }
      eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]|by apply (Hset i _ eq_refl eq_refl)|].
      eapply goes; [exact Htr|]. rewrite /status_at E1. by eapply replies.
    - (* it ends without a reply that tells anything *)
      apply goes_fails in Hgo as (Hx&Hy&E1).
      eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]|by apply (Hset i _ eq_refl eq_refl)|].
      eapply goes; [exact Htr|]. rewrite /status_at E1. apply fails. rewrite Hi.
      destruct (phases L t i) as [| |o l r q| |]; simpl; try done; by destruct (wrote ok l r).
    - (* anything else *)
      rewrite app_nil_r in Hkeep |- *. eapply Hkeep; [rewrite (still _ _ Ha); [exact HF|tauto]| |exact Htr].
      intros j. rewrite Hc. by rewrite (status_others t _ j Ha).
  Qed.

  (** So a life is a piece of a trace. *)
  Lemma one_life h w v : Opens L w → means w v → trace h (Machine [v] 0 (λ _, Idle)) →
    ∀ t, t ≤ ending L → ∃ m, matches t m ∧ trace (h ++ seen L t) m.
  Proof.
    intros [Hvs Hlb] Hm Htr t. induction t as [|t IH]; intros Ht.
    - exists (Machine [v] 0 (λ _, Idle)). split; [|by rewrite app_nil_r]. split_and!; simpl; [|done|].
      + rewrite Hvs. by repeat constructor.
      + intros i. unfold status_at. by rewrite (runner_begins _ _ _ _ (c_runner _ _ _ _ _ _ _ _ HC)).
    - destruct IH as (m&Hmt&Htr'); [lia|].
      destruct (lookup_lt_is_Some_2 (acts L) t) as [a Ha]; [unfold ending in Ht; lia|].
      rewrite (seen_S _ _ Ha) app_assoc. by eapply one_act.
  Qed.
  (** And a crash at its end is the specification's. *)
  Lemma one_crash h m w n w' : Opens L w → matches (ending L) m → trace h m → Recovers L n w' →
    ∃ v, means w' v ∧ trace (h ++ [Crash]) (Machine [v] 0 (λ _, Idle)).
  Proof.
    intros _ [HF [Hk Hc]] Htr (Hn&st0&st&(H0&Hst&HL)&Hw). destruct m as [Vs k cs]; simpl in *. subst k.
    destruct (Forall2_lookup_l _ _ _ _ _ HF Hst) as (v&Hv&Hm). exists v. split.
    - eapply (seq_but_free HS st w'); [apply DataIs|apply DataIs| |exact Hm].
      intros k Hkey Hfree. rewrite (Hw _ Hkey Hfree). by rewrite (Leads_cell _ _ _ _ _ _ HL Hkey).
    - eapply goes; [exact Htr|]. by eapply crashes.
  Qed.
  End life.

  Lemma executions_traced h w : execution keys cell body own ok stable flush free fresh h w →
    ∃ v, means w v ∧ trace h (Machine [v] 0 (λ _, Idle)).
  Proof.
    induction 1 as [w Hw|h w L n w' _ (v&Hm&Htr) Hop HC Hrec].
    - destruct (seq_mkfs HS w Hw) as (v&Hi&Ha). exists v. split; [done|]. by constructor.
    - destruct (one_life L HC h w v Hop Hm Htr (ending L)) as (m&Hmt&Htr'); [done|].
      rewrite app_assoc. by eapply one_crash.
  Qed.
  End simulation.

  (** Clients have seen h before the volume was opened for the last time, as w; since then the server did the acts of L; they
      are at any moment of it. What they have seen is a trace of the specification. *)
  Theorem clients_see_the_specification h w L : Sequential →
    execution keys cell body own ok stable flush free fresh h w → Opens L w → Contracts L →
    ∀ t, t ≤ ending L → ∃ m, trace (h ++ seen L t) m.
  Proof.
    intros HS Hex Hop HC t Ht. destruct (executions_traced HS _ _ Hex) as (v&Hm&Htr).
    destruct (one_life HS L HC h w v Hop Hm Htr t Ht) as (m&_&?). by exists m.
  Qed.

  (** And nothing shown is taken back: if call i was answered, and its last attempt touched an object that a stable call
      j had written before it, then commit n, which is j's, survives every crash from then on. (This is of objects, so it is not in the
      specification: what a reply shows of an UNSTABLE write may be lost.) *)
  Theorem nothing_shown_is_lost L u s t i j l l' r r' r'' need o p n k m w : Contracts L →
    at_ L u (Points j n) → phases L u j = Closed o l' r' p → stable o = true → is_Some (Writes l' !! k) →
    u < s → at_ L s (Closes i l r) → touches l k → at_ L t (Answers i r'' need) →
    (∀ x, s < x < t → ¬ at_ L x (Again i)) →
    Recovers L m w → n ≤ m.
  Proof.
    intros HC Hj Hp Hs Hk Hus Hi Htouch Ht Hlast [Hm _]. pose proof (c_seen _ _ _ _ _ _ _ _ HC) as Hseen.
    assert (∀ d, S u + d ≤ ending L → ∃ x, stab L (S u + d) !! k = Some x ∧ n ≤ x) as Hnoted.
    { induction d as [|d IH]; intros Hd.
      - rewrite Nat.add_0_r. by eapply (seen_noted _ _ Hseen).
      - destruct IH as (x&Hx&?); [lia|]. destruct (seen_stays _ _ Hseen (S u + d) k x) as (y&?&?); [lia|done|].
        exists y. rewrite Nat.add_succ_r. split; [done|lia]. }
    assert (s < ending L) as Hse by (by eapply lookup_lt_Some).
    assert (t < ending L) as Hte by (by eapply lookup_lt_Some).
    destruct (Hnoted (s - S u)) as (x&Hx&?); [lia|]. replace (S u + (s - S u)) with s in Hx by lia.
    pose proof (seen_covers _ _ Hseen _ _ _ _ _ _ _ _ _ Hi Ht Hlast Htouch Hx).
    pose proof (waits_need _ _ _ (c_waits _ _ _ _ _ _ _ _ HC) _ _ _ _ Ht).
    assert (∀ d, t + d ≤ ending L → lb L t ≤ lb L (t + d)) as Hgrows.
    { induction d as [|d IH]; intros Hd; [by rewrite Nat.add_0_r|]. rewrite Nat.add_succ_r. trans (lb L (t + d)); [apply IH; lia|].
      apply (c_mono _ _ _ _ _ _ _ _ HC). lia. }
    specialize (Hgrows (ending L - t)). replace (t + (ending L - t)) with (ending L) in Hgrows by lia. lia.
  Qed.
End theorem.
